r"""The tasks of `docs/compare.md` here and in packages from PyPI, timed and checked against NumPy.

    for p in sudare tenseal concrete desilofhe; do python -m venv target/peers/$p; done
    target/peers/sudare/bin/pip install dist/sudare-….whl
    target/peers/tenseal/bin/pip install numpy tenseal==0.3.18
    target/peers/concrete/bin/pip install concrete-python==2.11.0 'setuptools<81'
    target/peers/desilofhe/bin/pip install numpy desilofhe==2.0.0
    python bench/peers.py target/peers/*/bin/python --commit HASH --save bench/runs/peers-DATE.json

One thread each, a process for each task of each package. A line has the medians and all samples of what a
user waits for, in ms of wall time and of the processor: parameters (planning, compiling), keys, encryption,
computation and decryption.
What the file has of other tasks stays. A task that takes longer than `--most` seconds, or that a package
refuses, has the reason in place of times.
Concrete's integers are from 0 to 7 where the others' numbers are real, and one matrix is public where the
task is somebody else's computation.
"""

import math
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

import packages
from packages import STAGES, taken

# Seconds after which a task begins no other round.
ENOUGH = 5
TASKS = {
    "1": "product of two encrypted matrices",
    "2": "product with a public matrix",
    "3": "sums of columns",
    "4": "means and covariances of a table",
    "5": "an exact product of integers",
    "6": "compare and choose",
    "7": "a table with an entry for each byte",
    "8": "computation by somebody without the key",
    "9": "a product of three matrices",
    "10": "a result that others may see",
}
Stages = dict[str, Callable[..., Any]]


def data() -> dict[str, Any]:
    """The matrices of all packages."""
    import numpy as np

    rng = np.random.default_rng(0)
    real = {
        name: rng.uniform(-1, 1, s)
        for name, s in {"A": (12, 8), "B": (8, 6), "W": (8, 6), "C": (6, 4)}.items()
    }
    small = {name.lower(): rng.integers(0, 8, m.shape) for name, m in real.items()}
    large = {"P": rng.integers(-1000, 1000, (3, 4)), "Q": rng.integers(-1000, 1000, (4, 2))}
    return {**real, **small, **large, "bytes": np.array([17, 42], dtype="uint8")}


def here(task: str, d: dict[str, Any]) -> tuple[Stages, Any, float]:
    """A task in this package: its stages, what NumPy computes, and how far from it a result may be."""
    import numpy as np
    import sudare as sd

    if task in ("6", "7"):
        squares = np.sqrt(np.arange(256)).astype("uint8")
        work: Callable[..., Any] = (
            (lambda x: sd.where(x >= 18, 12, 5)) if task == "6" else lambda x: x.lookup(squares)
        )
        return (
            {
                "parameters": lambda: None,
                "keys": lambda _: sd.bits(threads=1),
                "encrypt": lambda _, keys: keys.encrypt(d["bytes"]),
                "compute": lambda _, keys, x: work(x),
                "decrypt": lambda _, keys, z: keys.decrypt(z),
            },
            np.where(d["bytes"] >= 18, 12, 5) if task == "6" else squares[d["bytes"]],
            0,
        )

    w = d["W"]
    functions: dict[str, tuple[Callable[..., Any], str]] = {
        "1": (lambda a, b: a @ b, "ab"),
        "2": (lambda a: a @ w, "a"),
        "3": (lambda a: a.sum(axis=0), "a"),
        "4": (lambda a: np.cov(a, rowvar=False), "a"),
        "5": (lambda p, q: p @ q, "pq"),
        "8": (lambda a, b: a @ b, "ab"),
        "9": (lambda a, b, c: a @ b @ c, "abc"),
        "10": (lambda a, b: a @ b, "ab"),
    }
    function, names = functions[task]

    def parameters() -> Any:
        if task == "4":
            return sd.table(d["A"].shape, max_abs=1)
        if task == "5":
            return sd.plan(
                function, **{n: sd.spec(d[n.upper()].shape, max_abs=1000, dtype=int) for n in names}
            )
        release = sd.Release(count=5) if task == "10" else None
        return sd.plan(
            function, error=1e-3, release=release, **{n: sd.spec(d[n.upper()].shape) for n in names}
        )

    def keys(plan: Any) -> Any:
        client = sd.Client(plan, threads=1)
        return client, (client.server().to_bytes() if task == "8" else client.server())

    def encrypt(_: Any, keys: Any) -> list[Any]:
        sent = [keys[0].encrypt(d[n.upper()], None if task == "4" else n) for n in names]
        return [x.to_bytes() for x in sent] if task == "8" else sent

    def compute(plan: Any, keys: Any, x: list[Any]) -> Any:
        if task == "4":
            return keys[1].moments(x[0])
        if task == "8":
            theirs = sd.Plan.from_json(plan.to_json())
            server = sd.Server.from_bytes(theirs, keys[1], threads=1)
            return function(*(sd.load(one, server) for one in x)).to_bytes()
        return function(*x)

    def decrypt(_: Any, keys: Any, z: Any) -> Any:
        if task == "8":
            return keys[0].decrypt(sd.load(z, keys[0]))
        found = keys[0].decrypt(z, release=task == "10")
        return found.covariance if task == "4" else found

    stages = {
        "parameters": parameters,
        "keys": keys,
        "encrypt": encrypt,
        "compute": compute,
        "decrypt": decrypt,
    }
    return stages, function(*(d[n.upper()] for n in names)), 0 if task == "5" else 1e-3


def tenseal(task: str, d: dict[str, Any]) -> tuple[Stages, Any, float]:
    """The same in TenSEAL, by the parameters of its own tutorials where they suffice."""
    import numpy as np
    import tenseal as ts

    a, b, w, c = d["A"], d["B"], d["W"], d["C"]
    wanted = {
        "1": a @ b,
        "2": a @ w,
        "3": a.sum(axis=0),
        "4": np.cov(a, rowvar=False),
        "5": d["P"] @ d["Q"],
        "8": a @ b,
        "9": a @ b @ c,
    }
    if task not in wanted:
        raise NotImplementedError("TenSEAL has no such operation")

    def keys(_: Any) -> Any:
        if task == "5":
            context = ts.context(
                ts.SCHEME_TYPE.BFV, poly_modulus_degree=8192, plain_modulus=prime(8192, 8_000_000)
            )
        else:
            deeper = [60, 40, 40, 40, 60] if task == "9" else [60, 40, 40, 60]
            degree = 16384 if task == "9" else 8192
            context = ts.context(
                ts.SCHEME_TYPE.CKKS, poly_modulus_degree=degree, coeff_mod_bit_sizes=deeper, n_threads=1
            )
            context.global_scale = 2**40
        context.generate_galois_keys()
        return context, (context.serialize(save_secret_key=False) if task == "8" else None)

    def tensor(context: Any, m: Any) -> Any:
        # What is summed along its first axis may not be packed along it.
        return ts.ckks_tensor(context, ts.plain_tensor(m), batch=False)

    def encrypt(_: Any, keys: Any) -> list[Any]:
        context = keys[0]
        if task == "5":
            rows = [ts.bfv_vector(context, row.tolist()) for row in d["P"]]
            return [rows, [ts.bfv_vector(context, column.tolist()) for column in d["Q"].T]]
        given = {"1": [a, b], "4": [a.T, a], "8": [a, b], "9": [a, b, c]}.get(task, [a])
        sent = [tensor(context, m) for m in given]
        return [x.serialize() for x in sent] if task == "8" else sent

    def compute(_: Any, keys: Any, x: list[Any]) -> Any:
        if task == "5":
            return [[row.dot(column) for column in x[1]] for row in x[0]]
        if task == "8":
            public = ts.context_from(keys[1])
            left, right = (ts.ckks_tensor_from(public, one) for one in x)
            return left.mm(right).serialize()
        return {
            "1": lambda: x[0].mm(x[1]),
            "2": lambda: x[0].mm(ts.plain_tensor(w)),
            "3": lambda: x[0].sum(axis=0),
            "4": lambda: (x[0].mm(x[1]), x[1].sum(axis=0)),
            "9": lambda: x[0].mm(x[1]).mm(x[2]),
        }[task]()

    def decrypt(_: Any, keys: Any, z: Any) -> Any:
        def shown(t: Any) -> Any:
            return np.array(t.decrypt().tolist())

        if task == "4":
            squares, sums = shown(z[0]), shown(z[1])
            return (squares - np.outer(sums, sums) / len(a)) / (len(a) - 1)
        if task == "5":
            return np.array([[entry.decrypt()[0] for entry in row] for row in z])
        return shown(ts.ckks_tensor_from(keys[0], z)) if task == "8" else shown(z)

    stages = {
        "parameters": lambda: None,
        "keys": keys,
        "encrypt": encrypt,
        "compute": compute,
        "decrypt": decrypt,
    }
    return stages, wanted[task], 0 if task == "5" else 1e-3


def concrete(task: str, d: dict[str, Any]) -> tuple[Stages, Any, float]:
    """The same in Concrete, of integers from 0 to 7."""
    import numpy as np
    from concrete import fhe

    a, b, w, c = (d[n] for n in "abwc")
    table = fhe.LookupTable([math.isqrt(x) for x in range(256)])
    every_byte = [(np.array([x, 255 - x]),) for x in range(256)]
    functions: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "1": (lambda x, y: x @ y, (a, b)),
        "2": (lambda x: x @ w, (a,)),
        "3": (lambda x: np.sum(x, axis=0), (a,)),
        "5": (lambda x, y: x @ y, (d["P"] % 8, d["Q"] % 8)),
        "6": (lambda x: (x >= 18) * 7 + 5, (d["bytes"].astype(int),)),
        "7": (lambda x: table[x], (d["bytes"].astype(int),)),
        "8": (lambda x: x @ w, (a,)),
        "9": (lambda x, y, z: x @ y @ z, (a % 2, b % 2, c % 2)),
    }
    if task not in functions:
        raise NotImplementedError("Concrete has no such operation")
    function, given = functions[task]

    def parameters() -> Any:
        names = "xyz"[: len(given)]
        rng = np.random.default_rng(1)
        largest = 1 if task == "9" else 7
        inputs = every_byte if task in ("6", "7") else [tuple(np.full(m.shape, largest) for m in given)]
        if task not in ("6", "7"):
            inputs += [tuple(rng.integers(0, largest + 1, m.shape) for m in given) for _ in range(20)]
        source = {
            1: lambda x: function(x),
            2: lambda x, y: function(x, y),
            3: lambda x, y, z: function(x, y, z),
        }
        compiler = fhe.Compiler(source[len(given)], dict.fromkeys(names, "encrypted"))
        circuit = compiler.compile(inputs)
        if task != "8":
            return circuit
        folder = tempfile.mkdtemp()
        circuit.server.save(f"{folder}/server.zip")
        server = fhe.Server.load(f"{folder}/server.zip")
        return server, fhe.Client(server.client_specs)

    def keys(made: Any) -> Any:
        if task == "8":
            made[1].keys.generate(force=True)
            return made[1].evaluation_keys.serialize()
        made.keygen(force=True)
        return None

    def encrypt(made: Any, _: Any) -> Any:
        if task == "8":
            return made[1].encrypt(*given).serialize()
        sent = made.encrypt(*given)
        return sent if isinstance(sent, tuple) else (sent,)

    def compute(made: Any, keys: Any, x: Any) -> Any:
        if task == "8":
            theirs = fhe.EvaluationKeys.deserialize(keys)
            return made[0].run(fhe.Value.deserialize(x), evaluation_keys=theirs).serialize()
        return made.run(*x)

    def decrypt(made: Any, _: Any, z: Any) -> Any:
        return made[1].decrypt(fhe.Value.deserialize(z)) if task == "8" else made.decrypt(z)

    stages = {
        "parameters": parameters,
        "keys": keys,
        "encrypt": encrypt,
        "compute": compute,
        "decrypt": decrypt,
    }
    return stages, function(*given) if task != "7" else [math.isqrt(int(x)) for x in d["bytes"]], 0


def desilofhe(task: str, d: dict[str, Any]) -> tuple[Stages, Any, float]:
    """The same in DESILO FHE, by its form of 256 matrices of 16 x 16, which is two products deep.

    Its product is with the transpose of what stands to the right. One matrix stands in the place of 256.
    """
    import desilofhe as fhe
    import numpy as np

    a, b, w, c = d["A"], d["B"], d["W"], d["C"]
    ones = np.hstack([a, np.ones((len(a), 1))])
    # What is encrypted, and the product's shape.
    given, shape = {
        "1": ([a, b.T], (12, 6)),
        "2": ([a], (12, 6)),
        "3": ([a.T], (1, 8)),
        "4": ([ones.T], (9, 9)),
        "8": ([a, b.T], (12, 6)),
        "9": ([a, b.T, c.T], (12, 4)),
    }.get(task, ([], ()))
    wanted = {"2": a @ w, "3": a.sum(axis=0, keepdims=True), "4": np.cov(a, rowvar=False), "9": a @ b @ c}
    if not given:
        raise NotImplementedError("DESILO FHE has no such operation")

    def padded(m: Any) -> Any:
        whole = np.zeros((256, 16, 16))
        whole[0, : m.shape[0], : m.shape[1]] = m
        return whole

    def parameters() -> Any:
        return fhe.Engine(shape=(256, 16, 16), thread_count=1, mode="parallel")

    def keys(engine: Any) -> Any:
        secret = engine.create_secret_key()
        products = engine.create_matrix_multiplication_key(secret)
        return secret, engine.serialize_matrix_multiplication_key(products) if task == "8" else products

    def encrypt(engine: Any, keys: Any) -> list[Any]:
        sent = [engine.encrypt(padded(m), keys[0]) for m in given]
        return [engine.serialize_ciphertext(x) for x in sent] if task == "8" else sent

    def compute(engine: Any, keys: Any, x: list[Any]) -> Any:
        multiply = engine.matrix_multiply
        if task == "8":
            theirs = parameters()
            left, right = (theirs.deserialize_ciphertext(one) for one in x)
            key = theirs.deserialize_matrix_multiplication_key(keys[1])
            return theirs.serialize_ciphertext(theirs.matrix_multiply(left, right, key))
        if task == "2":
            return multiply(x[0], engine.encode(padded(w.T)), keys[1])
        if task == "3":
            return multiply(engine.encode(padded(np.ones((1, 12)))), x[0], keys[1])
        if task == "4":
            return multiply(x[0], x[0], keys[1])
        first = multiply(x[0], x[1], keys[1])
        return multiply(first, x[2], keys[1]) if task == "9" else first

    def decrypt(engine: Any, keys: Any, z: Any) -> Any:
        z = engine.deserialize_ciphertext(z) if task == "8" else z
        found = engine.decrypt(z, keys[0]).reshape(256, 16, 16)[0, : shape[0], : shape[1]]
        if task != "4":
            return found
        squares, sums = found[:-1, :-1], found[-1, :-1]
        return (squares - np.outer(sums, sums) / len(a)) / (len(a) - 1)

    stages = {
        "parameters": parameters,
        "keys": keys,
        "encrypt": encrypt,
        "compute": compute,
        "decrypt": decrypt,
    }
    return stages, wanted.get(task, a @ b), 1e-3


PEERS = {
    "sudare": ("sudare", here),
    "tenseal": ("tenseal", tenseal),
    "concrete": ("concrete-python", concrete),
    "desilofhe": ("desilofhe", desilofhe),
}


def prime(degree: int, least: int) -> int:
    """The first prime above a number that is 1 modulo twice the degree."""
    x = least // (2 * degree) * 2 * degree + 1
    while x < least or any(x % f == 0 for f in range(2, math.isqrt(x) + 1)):
        x += 2 * degree
    return x


def measure(name: str, task: str, rounds: int) -> dict[str, Any]:
    """The line of a task of one package; the answer of every round is checked."""
    import numpy as np

    stages, wanted, error = PEERS[name][1](task, data())
    clocks = {"wall_ms": time.perf_counter, "processor_ms": time.process_time}
    samples: dict[str, dict[str, list[float]]] = {clock: {stage: [] for stage in STAGES} for clock in clocks}
    start = time.perf_counter()
    for turn in range(rounds):
        if time.perf_counter() - start > ENOUGH:
            break
        values: list[Any] = []
        for stage in STAGES:
            began = {clock: read() for clock, read in clocks.items()}
            values.append(stages[stage](*taken(values)))
            for clock, read in clocks.items():
                samples[clock][stage].append((read() - began[clock]) * 1e3)
        if not np.abs(np.asarray(values[-1], dtype=float) - wanted).max() <= error:
            return {"refused": f"a wrong answer in round {turn}"}
    medians = {c: {s: round(statistics.median(x), 3) for s, x in of.items()} for c, of in samples.items()}
    return {"median": medians, "samples": samples}


if __name__ == "__main__":
    packages.Comparison(
        script=__file__,
        doc=__doc__ or "",
        kind="task",
        works=TASKS,
        peers={module: package for module, (package, _) in PEERS.items()},
        measure=measure,
        medians=lambda line: line.get("median", {}).get("processor_ms"),
        rounds=5,
        most=60,
    ).run()
