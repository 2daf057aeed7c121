"""Operations of the lab in SEAL and OpenFHE, by their modules for Python: JSON lines for `beside.py`.

    PYTHON bench/libraries.py seal|openfhe SUITE...

The suites `ops`, `ops-k3` and `schemes` have the names and, where the library lets one choose, the primes of
`sudare-bench`; `bench/lattigo/bench.go` has them for Lattigo. SEAL is that of TenSEAL: a digit for each prime
and one special prime, no hoisting, BFV alone of the exact schemes. OpenFHE rescales by hand and takes its own
special primes and, for BFV and BGV, its own primes for a depth.

Every answer is checked. Times are medians in ms of one operation, by the processor time of all threads and by
the wall. A call takes some microseconds; SEAL's encoder takes and gives lists, a tenth of its time.
"""

import json
import math
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

# Least time of a sample and of a case in ms, least samples, and the most time of a case with more than these.
SAMPLE, ENOUGH, LEAST, MOST = 2.0, 400.0, 5, 20_000.0
RING, T = 1 << 14, 65537
CHAINS = {"ops": (RING, [60, 40, 40, 40]), "ops-k3": (2 * RING, [60] + [40] * 10)}
# The error that an answer of CKKS may have.
CLOSE = 2.0**-16
wrong_answers: list[str] = []
Made = Callable[[], Any]


def line(about: dict[str, Any], name: str, op: Made, error: Callable[[Any], float], limit: float = 0) -> None:
    """Measures calls of `op`, checks the last one's answer, prints the line.

    `about` has what every line of a set says, and in `times` how many operations a call does.
    """
    answer, repeat = op(), 1
    while True:
        began = time.perf_counter()
        for _ in range(repeat):
            op()
        if (time.perf_counter() - began) * 1e3 >= SAMPLE:
            break
        repeat *= 2
    clocks = (time.process_time, time.perf_counter)
    samples: list[list[float]] = []
    start = time.perf_counter()
    while True:
        began_at = [clock() for clock in clocks]
        for _ in range(repeat):
            # The result before goes first, so that one buffer may serve all of them.
            answer = None
            answer = op()
        each = repeat * about.get("times", 1)
        samples.append([(c() - b) * 1e3 / each for c, b in zip(clocks, began_at, strict=True)])
        taken = (time.perf_counter() - start) * 1e3
        if (taken > ENOUGH and len(samples) >= LEAST) or taken > MOST:
            break
    cpu, wall = (statistics.median(s) for s in zip(*samples, strict=True))
    far = error(answer)
    check = "ok" if far <= limit else f"over {limit:g}"
    if check != "ok":
        wrong_answers.append(name)
    found = {"cpu_ms": cpu, "median_ms": wall, "rounds": len(samples), "max_error": far, "check": check}
    print(json.dumps({**about, "case": name, **found}), flush=True)


def numbers(n: int) -> tuple[Any, Any]:
    """Two random vectors in [−1, 1)."""
    rng = np.random.default_rng(3)
    return rng.uniform(-1, 1, n), rng.uniform(-1, 1, n)


def distance(found: Any, wanted: Any) -> float:
    """The largest distance of two vectors."""
    return float(np.abs(np.asarray(found)[: len(wanted)] - wanted).max())


def squared(x: Any, times: int) -> Any:
    """Values modulo t, squared so many times in a row."""
    for _ in range(times):
        x = x * x % T
    return x


class Seal:
    """SEAL's objects of one set."""

    def __init__(self, scheme: str, n: int, bits: list[int]) -> None:
        import tenseal.sealapi as api

        self.api, self.n = api, n
        params = api.EncryptionParameters(getattr(api.SCHEME_TYPE, scheme))
        params.set_poly_modulus_degree(n)
        params.set_coeff_modulus(api.CoeffModulus.Create(n, bits))
        if scheme == "BFV":
            params.set_plain_modulus(T)
        self.context = api.SEALContext(params, True, api.SEC_LEVEL_TYPE.TC128)
        if not self.context.parameters_set():
            raise ValueError(self.context.parameters_error_message())
        make, public = api.KeyGenerator(self.context), api.PublicKey()
        self.relin, self.galois = api.RelinKeys(), api.GaloisKeys()
        make.create_public_key(public)
        make.create_relin_keys(self.relin)
        # The rotations of a sum by doubling. SEAL's module takes elements of the Galois group.
        self.steps = [1 << i for i in range(n.bit_length() - 2)]
        if scheme == "CKKS":
            make.create_galois_keys([pow(3, k, 2 * n) for k in self.steps], self.galois)
        self.by_public = api.Encryptor(self.context, public)
        self.by_secret = api.Encryptor(self.context, make.secret_key())
        self.decryptor = api.Decryptor(self.context, make.secret_key())
        self.server = api.Evaluator(self.context)
        with tempfile.NamedTemporaryFile() as file:
            # The head of a file has SEAL's version.
            params.save(file.name)
            head = file.read(5)
        name = f"SEAL {head[3]}.{head[4]} of TenSEAL {version('tenseal')}"
        self.about = {"n": n, "params": str(bits), "peer": name}

    def decrypted(self, ciphertext: Any) -> Any:
        """The plaintext of a ciphertext."""
        plain = self.api.Plaintext()
        self.decryptor.decrypt(ciphertext, plain)
        return plain

    def into(self, operation: Callable[..., None], *given: Any) -> Made:
        """A call that writes into one object, and gives it."""
        out = self.api.Ciphertext()

        def call() -> Any:
            operation(*given, out)
            return out

        return call

    def times(self, a: Any, b: Any, out: Any) -> None:
        """A product with its relinearisation."""
        self.server.multiply(a, b, out)
        self.server.relinearize_inplace(out, self.relin)


def seal_ckks(suite: str) -> None:
    """`ops` and `ops-k3`."""
    n, q = CHAINS[suite]
    s = Seal("CKKS", n, [*q, 60])
    about, api, server = {"suite": suite, **s.about}, s.api, s.server
    encoder, first, scale = api.CKKSEncoder(s.context), s.context.first_parms_id(), 2.0**40
    x, y = numbers(n // 2)
    given = x.tolist()

    def encoded(values: list[float], into: Any) -> Any:
        encoder.encode(values, first, scale, into)
        return into

    plain, other = encoded(given, api.Plaintext()), encoded(y.tolist(), api.Plaintext())
    a, b, made = api.Ciphertext(), api.Ciphertext(), api.Plaintext()
    s.by_public.encrypt(plain, a)
    s.by_public.encrypt(other, b)

    def values(ciphertext: Any) -> Any:
        return encoder.decode_double(s.decrypted(ciphertext))

    def case(name: str, operation: Callable[..., None], given: tuple[Any, ...], wanted: Any) -> None:
        most = CLOSE * (n if name == "total sum" else 1)
        line(about, name, s.into(operation, *given), lambda z: distance(values(z), wanted), most)

    def product(a: Any, b: Any, out: Any) -> None:
        s.times(a, b, out)
        server.rescale_to_next_inplace(out)

    def by_plain(a: Any, p: Any, out: Any) -> None:
        server.multiply_plain(a, p, out)
        server.rescale_to_next_inplace(out)

    def total(a: Any, out: Any) -> None:
        turned = api.Ciphertext()
        server.rotate_vector(a, s.steps[0], s.galois, turned)
        server.add(a, turned, out)
        for k in s.steps[1:]:
            server.rotate_vector(out, k, s.galois, turned)
            server.add_inplace(out, turned)

    if suite == "ops":
        far = lambda p: distance(encoder.decode_double(p), x)  # noqa: E731
        line(about, "encode", lambda: encoded(given, made), far, CLOSE)
        case("encrypt public", s.by_public.encrypt, (plain,), x)
        case("encrypt secret", s.by_secret.encrypt_symmetric, (plain,), x)
        line(about, "decrypt and decode", lambda: values(a), lambda z: distance(z, x), CLOSE)
        case("add", server.add, (a, b), x + y)
        case("mul_plain + rescale", by_plain, (a, other), x * y)
    else:
        case("total sum", total, (a,), np.full(n // 2, x.sum()))
    case("mul + relin + rescale", product, (a, b), x * y)
    case("rotate", server.rotate_vector, (a, 1, s.galois), np.roll(x, -1))


def seal_bfv(depth: int, bits: list[int]) -> None:
    """`schemes`: the primes of Sudare's set, one special prime."""
    s = Seal("BFV", RING, bits)
    about = {"suite": "schemes", "depth": depth, **s.about}
    encoder, plain = s.api.BatchEncoder(s.context), s.api.Plaintext()
    x = np.random.default_rng(11).integers(0, T, RING)
    encoder.encode([int(v) for v in x], plain)
    a, b = s.api.Ciphertext(), s.api.Ciphertext()
    s.by_secret.encrypt_symmetric(plain, a)
    s.by_secret.encrypt_symmetric(plain, b)

    def chain(a: Any, out: Any) -> None:
        s.times(a, a, out)
        for _ in range(depth - 1):
            s.server.square_inplace(out)
            s.server.relinearize_inplace(out, s.relin)

    def case(name: str, operation: Callable[..., None], given: tuple[Any, ...], wanted: Any) -> None:
        def wrong(z: Any) -> float:
            return float((np.array(encoder.decode_uint64(s.decrypted(z))) != wanted).sum())

        line(about, f"bfv {name}", s.into(operation, *given), wrong)

    case("add", s.server.add, (a, b), 2 * x % T)
    case("multiply", s.times, (a, b), squared(x, 1))
    case("all products", chain, (a,), squared(x, depth))


def openfhe(params: Any) -> tuple[Any, Any, dict[str, Any]]:
    """A context with the features that a user turns on, its keys, and what a line says of it."""
    import openfhe as api

    context = api.GenCryptoContext(params)
    for feature in ("PKE", "KEYSWITCH", "LEVELEDSHE", "ADVANCEDSHE"):
        context.Enable(getattr(api.PKESchemeFeature, feature))
    keys = context.KeyGen()
    context.EvalMultKeyGen(keys.secretKey)
    bits = f"{math.log2(context.GetModulus()):.0f} bits of data primes"
    peer = f"OpenFHE {version('openfhe')}"
    return context, keys, {"n": context.GetRingDimension(), "params": bits, "peer": peer}


def openfhe_ckks(suite: str) -> None:
    """`ops` and `ops-k3`."""
    import openfhe as api

    n, q = CHAINS[suite]
    params = api.CCParamsCKKSRNS()
    params.SetRingDim(n)
    params.SetMultiplicativeDepth(len(q) - 1)
    params.SetFirstModSize(60)
    params.SetScalingModSize(40)
    params.SetScalingTechnique(api.ScalingTechnique.FIXEDMANUAL)
    params.SetNumLargeDigits(4)
    context, keys, found = openfhe(params)
    about = {"suite": suite, **found}
    turns = list(range(1, 9 if suite == "ops" else 17))
    context.EvalRotateKeyGen(keys.secretKey, turns)
    x, y = numbers(n // 2)
    plain, other = context.MakeCKKSPackedPlaintext(x), context.MakeCKKSPackedPlaintext(y)
    a, b = context.Encrypt(keys.publicKey, plain), context.Encrypt(keys.publicKey, other)

    def far(ciphertext: Any, wanted: Any) -> float:
        return distance(context.Decrypt(keys.secretKey, ciphertext).GetRealPackedValue(), wanted)

    def case(name: str, op: Made, wanted: Any) -> None:
        most = CLOSE * (n if name == "total sum" else 1)
        line(about, name, op, lambda z: far(z, wanted), most)

    if suite == "ops":
        encoded = lambda p: far(context.Encrypt(keys.publicKey, p), x)  # noqa: E731
        line(about, "encode", lambda: context.MakeCKKSPackedPlaintext(x), encoded, CLOSE)
        case("encrypt public", lambda: context.Encrypt(keys.publicKey, plain), x)
        case("encrypt secret", lambda: context.Encrypt(keys.secretKey, plain), x)
        read = lambda p: distance(p.GetRealPackedValue(), x)  # noqa: E731
        line(about, "decrypt and decode", lambda: context.Decrypt(keys.secretKey, a), read, CLOSE)
        case("add", lambda: context.EvalAdd(a, b), x + y)
        case("mul_plain + rescale", lambda: context.Rescale(context.EvalMult(a, other)), x * y)
    else:
        context.EvalSumKeyGen(keys.secretKey)
        case("total sum", lambda: context.EvalSum(a, n // 2), np.full(n // 2, x.sum()))
    case("mul + relin + rescale", lambda: context.Rescale(context.EvalMult(a, b)), x * y)
    case("rotate", lambda: context.EvalRotate(a, 1), np.roll(x, -1))

    def hoisted() -> list[Any]:
        digits = context.EvalFastRotationPrecompute(a)
        return [context.EvalFastRotation(a, k, 2 * n, digits) for k in turns]

    def worst(many: list[Any]) -> float:
        return max(far(z, np.roll(x, -k)) for z, k in zip(many, turns, strict=True))

    name, times = ("rotate, 8 hoisted, each", 8) if suite == "ops" else ("16 hoisted rotations", 1)
    line({**about, "times": times}, name, hoisted, worst, CLOSE)


def openfhe_exact(scheme: str, depth: int) -> None:
    """`schemes`: by the primes that OpenFHE chooses for the depth."""
    import openfhe as api

    params = api.CCParamsBGVRNS() if scheme == "bgv" else api.CCParamsBFVRNS()
    params.SetRingDim(RING)
    params.SetPlaintextModulus(T)
    params.SetMultiplicativeDepth(depth)
    if scheme == "bgv":
        params.SetScalingTechnique(api.ScalingTechnique.FIXEDMANUAL)
        if depth == 6:
            # Three digits, its own choice, need special primes for which this degree has no room.
            params.SetNumLargeDigits(4)
    context, keys, found = openfhe(params)
    about = {"suite": "schemes", "depth": depth, **found}
    x = np.random.default_rng(11).integers(0, T, RING)
    plain = context.MakePackedPlaintext([int(v) for v in np.where(x > T // 2, x - T, x)])
    a, b = context.Encrypt(keys.secretKey, plain), context.Encrypt(keys.secretKey, plain)

    def reduced(z: Any) -> Any:
        return context.ModReduce(z) if scheme == "bgv" else z

    def chain() -> Any:
        z = a
        for _ in range(depth):
            z = reduced(context.EvalSquare(z))
        return z

    def case(name: str, op: Made, wanted: Any) -> None:
        def wrong(z: Any) -> float:
            values = context.Decrypt(keys.secretKey, z).GetPackedValue()
            return float((np.array(values) % T != wanted).sum())

        line(about, f"{scheme} {name}", op, wrong)

    case("add", lambda: context.EvalAdd(a, b), 2 * x % T)
    case("multiply", lambda: reduced(context.EvalMult(a, b)), squared(x, 1))
    case("all products", chain, squared(x, depth))


def main() -> int:
    """Runs the suites of one library."""
    library, *suites = sys.argv[1:]
    for suite in suites:
        match library, suite:
            case "seal", "ops" | "ops-k3":
                seal_ckks(suite)
            case "seal", "schemes":
                seal_bfv(3, [46, 46, 46, 47])
                seal_bfv(6, [40] * 6 + [43])
            case "openfhe", "ops" | "ops-k3":
                openfhe_ckks(suite)
            case "openfhe", "schemes":
                for scheme in ("bfv", "bgv"):
                    openfhe_exact(scheme, 3)
                    openfhe_exact(scheme, 6)
            case _:
                print(f"{library} has no suite {suite}", file=sys.stderr)
                return 2
    return int(bool(wrong_answers))


if __name__ == "__main__":
    sys.exit(main())
