"""Low-level CKKS: against NumPy, within the bounds that travel along; what is refused, and by which words."""

from __future__ import annotations

import copy
import inspect
import os
import re
import runpy
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sudare as sd
from sudare import bfv, bgv, ckks, tfhe

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "python/examples").glob("[0-9]*.py"))
RNG = np.random.default_rng(5)
STEPS = [1, 2, 3, 5, -4]


def parameters(**changes: Any) -> ckks.Params:
    """A small set without security."""
    own: dict[str, Any] = {"log_n": 10, "q_bits": [49, 40, 40, 40], "p_bits": [49], "log_scale": 40}
    return ckks.Params(**{**own, "security": "insecure", **changes})


@pytest.fixture(scope="module")
def world() -> SimpleNamespace:
    """Keys, vectors and ciphertexts."""
    params = parameters()
    secret = ckks.SecretKey.generate(params)
    total = ckks.TraceFunction.total_sum(params).doubling()
    keys = ckks.KeyGenerator(secret).eval_keys(
        params.max_level, total.keys(params.max_level), steps=STEPS, conjugation=True
    )
    encoder, encryptor = ckks.Encoder(params), ckks.Encryptor.with_secret_key(secret)
    x, y = (
        RNG.uniform(-0.7, 0.7, params.slots) + 1j * RNG.uniform(-0.7, 0.7, params.slots) for _ in range(2)
    )
    a, b = (encryptor.encrypt(encoder.encode_complex(v, 1.0)) for v in (x, y))
    return SimpleNamespace(
        params=params,
        secret=secret,
        keys=keys,
        total=total,
        encoder=encoder,
        encryptor=encryptor,
        decryptor=ckks.Decryptor(secret),
        server=ckks.Evaluator(params, keys, threads=2),
        x=x,
        y=y,
        a=a,
        b=b,
    )


def check(w: SimpleNamespace, c: ckks.Ciphertext, wanted: Any) -> None:
    """A ciphertext holds what it should, within its bound, and not exactly."""
    assert 0 < w.decryptor.error(c, np.asarray(wanted, complex)) <= c.error_bound < 1e-4


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.stem)
def test_examples(example: Path) -> None:
    """The numbered examples assert their answers."""
    runpy.run_path(str(example))


def test_every_rust_example_is_there() -> None:
    """Those about these schemes have a Python one of the same number and name."""
    rust = {
        p.stem for crate in ("he", "exact", "tfhe") for p in ROOT.glob(f"crates/{crate}/examples/[0-9]*.rs")
    }
    assert len(rust) >= 5
    assert {e.stem for e in EXAMPLES} >= rust


def test_parameters_of_ones_own() -> None:
    """By bits or by primes; what a set says of itself; the check of security and its override by name."""
    params = parameters()
    assert (params.degree, params.log_n, params.slots, params.max_level) == (1024, 10, 512, 3)
    assert [q.bit_length() for q in params.q] == [49, 40, 40, 40]
    assert all(q % (2 * params.degree) == 1 for q in params.q + params.p)
    assert params.log_qp == pytest.approx(np.log2([float(q) for q in params.q + params.p]).sum())
    assert params.log_q(1) == pytest.approx(np.log2(float(params.q[0])) + np.log2(float(params.q[1])))
    assert params.prime_at(3) == params.q[3]
    assert (params.secret, params.security, params.scale) == ("ternary", 0, 2.0**40)
    same = ckks.Params(log_n=10, q=params.q, p=params.p, log_scale=40, security="insecure")
    assert same == params
    assert hash(same) == hash(params)
    assert same.hash == params.hash
    other = ckks.Params(
        log_n=10, q=params.q[:1] + params.q[:0:-1], p=params.p, log_scale=40, security="insecure"
    )
    assert other != params
    assert other.q == params.q[:1] + params.q[:0:-1]
    weighted = parameters(secret="fixed_weight", weight=64)
    assert (weighted.secret, weighted.weight) == ("fixed_weight", 64)
    with pytest.raises(sd.SecurityError, match=r"over the limit of 106 bits.*security \"insecure\" by name"):
        parameters(log_n=12, security=128)
    assert ckks.Params(log_n=14, q_bits=[50, 40], p_bits=[50], log_scale=40).security >= 128
    for bad in ("none", 100, None.__class__, 128.5):
        with pytest.raises(sd.InputError, match='128, 192 or 256 bits, or none by the name "insecure"'):
            parameters(security=bad)
    with pytest.raises(sd.InputError, match="either q_bits and p_bits, or the primes"):
        parameters(q=params.q)
    with pytest.raises(sd.InputError, match='"fixed_weight" with one'):
        parameters(secret="sparse")
    with pytest.raises(sd.SudareError):
        ckks.Params(log_n=10, q=[params.q[0], 4097], log_scale=40, security="insecure")
    with pytest.raises(sd.PlanError, match="a digit of"):
        parameters(digit_limbs=3)
    with pytest.raises(sd.LevelError):
        params.log_q(4)


def test_a_plan_says_its_ring() -> None:
    """N, bits of the primes and log QP are in the summary of every plan."""
    summary = sd.plan(lambda A, B: A @ B, A=sd.spec((8, 8)), B=sd.spec((8, 8)), error=1e-4).summary
    assert summary["degree"] in [2**k for k in range(9, 18)]
    assert summary["log_qp"] == pytest.approx(sum(summary["q_bits"] + summary["p_bits"]), abs=0.1)


def test_arithmetic(world: SimpleNamespace) -> None:
    """Sums, products, plaintexts, constants; with and without relinearisation and rescale."""
    w, s = world, world.server
    check(w, w.a, w.x)
    check(w, s.add(w.a, w.b), w.x + w.y)
    check(w, s.sub(w.a, w.b), w.x - w.y)
    check(w, s.negate(w.a), -w.x)
    product = s.mul(w.a, w.b)
    assert len(product.parts()) == 3
    check(w, product, w.x * w.y)
    relinearised = s.relinearize(product)
    assert (len(relinearised.parts()), relinearised.level) == (2, 3)
    check(w, relinearised, w.x * w.y)
    rescaled = s.rescale(relinearised)
    assert (rescaled.level, rescaled.scale) == (
        2,
        pytest.approx(w.a.scale**2 / w.params.prime_at(3), rel=1e-12),
    )
    for c in (
        rescaled,
        s.relinearize_rescale(product),
        s.mul_rescale(w.a, w.b),
        s.rescale(s.mul_relin(w.a, w.b)),
    ):
        check(w, c, w.x * w.y)
    check(w, s.rescale(s.relinearize(s.dot([w.a, w.b], [w.b, w.b]))), w.x * w.y + w.y**2)
    p = w.encoder.encode_complex(w.y, 1.0)
    check(w, s.add_plain(w.a, p), w.x + w.y)
    check(w, s.sub_plain(w.a, p), w.x - w.y)
    check(w, s.rescale(s.mul_plain(w.a, p)), w.x * w.y)
    check(w, s.mul_plain_rescale(w.a, p), w.x * w.y)
    check(w, s.add_constant(w.a, -0.25), w.x - 0.25)
    check(w, s.mul_constant(w.a, 1.5), 1.5 * w.x)
    check(w, s.mul_integer(w.a, -3), -3 * w.x)
    check(w, s.mul_imaginary_unit(w.a), 1j * w.x)
    fine = s.refine(w.a, 8)
    assert fine.scale == 8 * w.a.scale
    check(w, fine, w.x)
    low = s.drop_to(w.a, 1)
    assert (low.level, low.primes) == (1, w.params.q[:2])
    check(w, low, w.x)
    assert s.set_scale(w.a, 2.0**39).scale == 2.0**39
    s.reset_counters()
    s.mul_rescale(w.a, w.b)
    assert s.counters() == {"add": 0, "rot": 0, "cmult": 0, "mult": 1, "relin": 1, "key_switches": 1}


def test_rotations(world: SimpleNamespace) -> None:
    """Steps of any sign, conjugation, hoisting, sums of slots, inner products."""
    w, s = world, world.server
    for step in STEPS:
        check(w, s.rotate(w.a, step), np.roll(w.x, -step))
    for step, c in zip(STEPS, s.rotate_many(w.a, STEPS), strict=True):
        check(w, c, np.roll(w.x, -step))
    check(w, s.conjugate(w.a), w.x.conj())
    element = w.params.rotation_element(3)
    check(w, s.automorphism(w.a, element), np.roll(w.x, -3))
    check(
        w,
        s.sum_of_automorphisms(w.a, [1, element, w.params.conjugation_element()]),
        w.x + np.roll(w.x, -3) + w.x.conj(),
    )
    check(w, s.trace(w.a, w.total), np.full(w.params.slots, w.x.sum()))
    check(w, s.inner_product(w.a, w.b, w.total), np.full(w.params.slots, (w.x * w.y).sum()))
    plain = w.encoder.encode_complex(w.y, 1.0)
    wanted = np.full(w.params.slots, (w.x * w.y).sum())
    check(w, s.inner_product_plain(w.a, plain, w.total), wanted)
    with pytest.raises(sd.MissingKeyError, match="rotation by 7"):
        s.rotate(w.a, 7)


def test_linear_maps(world: SimpleNamespace) -> None:
    """Maps by diagonals, flat, hoisted and chained, against a matrix of NumPy."""
    w, n = world, world.params.slots
    diagonals = {t: RNG.uniform(-1, 1, n) + 1j * RNG.uniform(-1, 1, n) for t in (0, 1, 2, 5)}
    diagonals[3] = np.array([0.5, -0.5])
    wanted = sum(np.resize(d, n) * np.roll(w.x, -t) for t, d in diagonals.items())
    maps = [
        ckks.LinearMap(w.encoder, diagonals),
        ckks.LinearMap.hoisted(w.encoder, diagonals),
        ckks.LinearMap.chained(w.encoder, diagonals, 2, 2),
    ]
    for made in maps:
        keys = ckks.KeyGenerator(w.secret).eval_keys(None, made.keys())
        check(w, ckks.Evaluator(w.params, keys).linear_map(w.a, made), wanted)
    keys = ckks.KeyGenerator(w.secret).eval_keys(None, maps[1].keys())
    for c in ckks.Evaluator(w.params, keys).linear_maps(w.a, [maps[1], maps[1]]):
        check(w, c, wanted)
    with pytest.raises(sd.PlanError, match="diagonal"):
        ckks.LinearMap(w.encoder, {})
    with pytest.raises(sd.ShapeError):
        ckks.LinearMap(w.encoder, {0: np.ones(3)})


def test_matrix_vector(world: SimpleNamespace) -> None:
    """A matrix of any shape times a vector, with the keys that it names."""
    w = world
    for shape in [(6, 20), (20, 6), (5, 5)]:
        m, v = RNG.uniform(-1, 1, shape), RNG.uniform(-1, 1, shape[1])
        made = ckks.MatrixVector(w.encoder, m)
        assert made.shape == shape
        server = ckks.Evaluator(w.params, ckks.KeyGenerator(w.secret).eval_keys(None, made.keys()))
        c = server.matrix_vector(made, w.encryptor.encrypt(w.encoder.encode(made.layout(w.params, v), 1.0)))
        found = w.encoder.decode(w.decryptor.decrypt(c))
        assert np.abs(found[: shape[0]] - m @ v).max() <= c.error_bound < 1e-4
    with pytest.raises(sd.ShapeError):
        made.layout(w.params, np.ones(3))
    with pytest.raises(sd.PlanError, match="sides from 1 to 512"):
        ckks.MatrixVector(w.encoder, np.ones((600, 2)))


def test_polynomials(world: SimpleNamespace) -> None:
    """Chebyshev and power bases, from coefficients and from a fit."""
    w = world
    real = w.encryptor.encrypt(w.encoder.encode(w.x.real, 1.0))
    fit = sd.fit(np.exp, (-1, 1), degree=7)
    for polynomial, value in [
        (
            ckks.Polynomial.chebyshev([0.5, 1, 0, -0.25], (-1, 1)),
            np.polynomial.chebyshev.chebval(w.x.real, [0.5, 1, 0, -0.25]),
        ),
        (ckks.Polynomial.power([1, 0, -0.5], 1.0), 1 - 0.5 * w.x.real**2),
        (
            ckks.Polynomial.chebyshev(fit.coefficients, fit.interval),
            np.polynomial.chebyshev.chebval(w.x.real, fit.coefficients),
        ),
    ]:
        assert np.abs(polynomial.evaluate(w.x.real) - value).max() < 1e-12
        circuit = ckks.PolynomialCircuit(w.params, polynomial)
        c = w.server.polynomial(real, circuit)
        assert (c.level, c.scale) == (3 - polynomial.depth, w.params.scale)
        check(w, c, value)
    with pytest.raises(sd.LevelError):
        ckks.PolynomialCircuit(w.params, ckks.Polynomial.power(np.ones(40), 1.0))


def test_polynomials_over_wide_intervals(world: SimpleNamespace) -> None:
    """Powers of a wide variable leave constants no bits: refused, but right at a smaller scale."""
    w, radius = world, 10_000.0
    wide = ckks.Polynomial.chebyshev(np.ones(8) / 8, (-radius, radius))
    with pytest.raises(sd.PlanError, match="over a half-width of 10000 "):
        ckks.PolynomialCircuit(w.params, wide)
    scale = w.params.scale / 2**13
    x = w.encryptor.encrypt(w.encoder.encode(radius * w.x.real, radius, scale=scale))
    value = np.polynomial.chebyshev.chebval(w.x.real, np.ones(8) / 8)
    c = w.server.polynomial(x, ckks.PolynomialCircuit(w.params, wide, scale=scale, target=w.params.scale))
    assert w.decryptor.error(c, value.astype(complex)) <= c.error_bound < 1e-2


def test_polynomials_as_arrays(world: SimpleNamespace) -> None:
    """Residues go out and in as NumPy arrays, and mean what they say."""
    w = world
    parts = w.a.parts()
    assert [p.shape for p in parts] == [(4, 1024)] * 2
    assert all(p.dtype == np.uint64 for p in parts)
    q = np.array(w.a.primes, np.uint64)[:, None]
    assert all((p < q).all() for p in parts)
    # A constant of one half in units of the scale, added to c_0, is one half more in every slot.
    moved = parts[0].copy()
    moved[:, 0] = (moved[:, 0] + np.uint64(2**39)) % q[:, 0]
    shifted = w.a.with_parts([moved, parts[1]])
    assert w.decryptor.error(shifted, w.x + 0.5) < 1e-8
    # A plaintext's residues are one integer polynomial modulo each prime.
    poly = w.encoder.encode([0.5, 0.25], 1.0).poly()
    centred = [
        np.where(row > q // 2, row.astype(object) - int(q), row.astype(object))
        for row, q in zip(poly, w.params.q, strict=True)
    ]
    assert all((row == centred[0]).all() for row in centred)
    with pytest.raises(sd.SudareError):
        w.a.with_parts([np.full((4, 1024), 2**63, np.uint64), parts[1]])
    with pytest.raises(sd.SudareError):
        w.a.with_parts([parts[0][:2], parts[1]])
    assert w.a.with_bound(0.5).bound == 0.5


def test_arrays(world: SimpleNamespace) -> None:
    """Lists, other numbers and strides are read as NumPy reads them; what would change a value is refused."""
    e = world.encoder
    wanted = e.decode(e.encode(np.arange(4.0) / 4, 1.0))
    for given in (
        [0, 0.25, 0.5, 0.75],
        np.arange(4, dtype="f4") / 4,
        (np.arange(8.0) / 8)[::2],
        (0, 0.25, 0.5, 0.75),
    ):
        assert (e.decode(e.encode(given, 1.0)) == wanted).all()
    assert (
        e.decode(e.encode(np.frombuffer(b"\0" + (np.arange(4) / 4).tobytes(), offset=1), 1.0)) == wanted
    ).all()
    assert (e.decode(e.encode([], 1.0)) == 0).all()
    assert e.decode(e.encode([1, True], 1.0))[1] == pytest.approx(1)
    for bad in ([1j], np.ones((2, 2)), ["a"], None, np.array([object()])):
        with pytest.raises(sd.InputError, match="a vector of real numbers is needed"):
            e.encode(bad, 1.0)
    with pytest.raises(sd.InputError):
        e.encode([np.nan], 1.0)
    with pytest.raises(sd.InputError):
        e.encode([2.0], 1.0)
    with pytest.raises(sd.ShapeError):
        e.encode(np.zeros(513), 1.0)
    p = e.encode([0.5], 1.0, level=1, scale=2.0**30)
    assert (p.level, p.scale, p.bound) == (1, 2.0**30, 1.0)
    assert e.decode(p)[0] == pytest.approx(0.5, abs=1e-6)
    c = e.decode_coefficients(e.encode_coefficients([1.5, -2], 3.0))
    assert np.abs(c[:2] - [1.5, -2]).max() < 1e-9
    assert e.decode(e.encode_constant(0.25, 1.0))[-1] == pytest.approx(0.25)


def test_public_key(world: SimpleNamespace) -> None:
    """What is encrypted under the public key has more noise, and the secret key reads it."""
    w = world
    public = ckks.KeyGenerator(w.secret).public_key()
    c = ckks.Encryptor.with_public_key(public).encrypt(w.encoder.encode_complex(w.x, 1.0))
    check(w, c, w.x)
    assert c.noise > w.a.noise
    assert len(c.to_bytes()) > 1.8 * len(w.a.to_bytes())


def test_bytes(world: SimpleNamespace) -> None:
    """All objects travel; bytes of another kind, set or key are refused by name."""
    w = world
    params = ckks.Params.from_bytes(w.params.to_bytes())
    assert params == w.params
    secret = ckks.SecretKey.from_bytes(params, w.secret.to_bytes())
    assert secret.id == w.secret.id
    public = ckks.KeyGenerator(secret).public_key()
    assert ckks.PublicKey.from_bytes(params, public.to_bytes()).id == secret.id
    keys = ckks.EvalKeys.from_bytes(params, w.keys.to_bytes())
    assert (keys.id, keys.relin_level, keys.galois_levels) == (secret.id, 3, w.keys.galois_levels)
    assert keys.nbytes == w.keys.nbytes
    a = ckks.Ciphertext.from_bytes(params, w.a.to_bytes())
    assert all((p == q).all() for p, q in zip(a.parts(), w.a.parts(), strict=True))
    c = ckks.Evaluator(params, keys).mul_rescale(a, ckks.Ciphertext.from_bytes(params, w.b.to_bytes()))
    check(w, c, w.x * w.y)
    p = w.encoder.encode([0.5], 1.0)
    assert (ckks.Plaintext.from_bytes(params, p.to_bytes()).poly() == p.poly()).all()
    with pytest.raises(sd.FormatError):
        ckks.Ciphertext.from_bytes(params, w.keys.to_bytes())
    with pytest.raises(sd.FormatError):
        ckks.Ciphertext.from_bytes(params, w.a.to_bytes()[:-1])
    other = parameters(log_scale=39)
    with pytest.raises(sd.KeyMismatchError):
        ckks.Ciphertext.from_bytes(other, w.a.to_bytes())
    with pytest.raises(sd.KeyMismatchError):
        ckks.Evaluator(other, w.keys)
    with pytest.raises(sd.KeyMismatchError):
        ckks.Decryptor(ckks.SecretKey.generate(params)).decrypt(w.a)
    primes = params.q[:1] + params.q[:0:-1]
    own = ckks.Params(log_n=10, q=primes, p=params.p, log_scale=40, security="insecure")
    with pytest.raises(sd.UnsupportedError, match="send q and p"):
        own.to_bytes()
    secret = ckks.SecretKey.generate(own)
    x = ckks.Encryptor.with_secret_key(secret).encrypt(ckks.Encoder(own).encode([0.5], 1.0))
    x = ckks.Ciphertext.from_bytes(own, x.to_bytes())
    assert ckks.Decryptor(secret).error(x, [0.5]) < 1e-8


def test_one_thread_or_many(world: SimpleNamespace) -> None:
    """The same bits."""
    w = world
    alone = ckks.Evaluator(w.params, w.keys, threads=1)
    assert alone.rotate(w.a, 3).to_bytes() == w.server.rotate(w.a, 3).to_bytes()
    assert alone.mul_rescale(w.a, w.b).to_bytes() == w.server.mul_rescale(w.a, w.b).to_bytes()


def test_secrets_are_hidden(world: SimpleNamespace) -> None:
    """No secret key or decryptor shows anything, and no key is pickled."""
    w = world
    for x in (w.secret, w.decryptor):
        assert re.fullmatch(r"\w+\((key )?[0-9a-f]+, hidden\)", repr(x)), repr(x)
    for x in (w.secret, w.decryptor, w.encryptor):
        with pytest.raises(TypeError):
            copy.deepcopy(x)


def test_bootstrap() -> None:
    """New levels for the same slots, with progress; what has no level for it is refused."""
    params = ckks.BootstrapParams("D", insecure=11)
    assert params.params.security == 0
    secret = ckks.SecretKey.generate(params.params)
    keys = ckks.BootstrapKeys.generate(secret, params)
    keys = ckks.BootstrapKeys.from_bytes(params, keys.to_bytes())
    refresher = ckks.Bootstrapper(keys, threads=2)
    encoder = ckks.Encoder(params.params)
    x = np.resize(RNG.uniform(-0.5, 0.5, params.slots), params.params.slots)
    c = ckks.Encryptor.with_secret_key(secret).encrypt(encoder.encode(x, 0.5, level=params.input_level))
    steps: list[tuple[int, int]] = []
    fresh = refresher.refresh(c, progress=lambda done, total: steps.append((done, total)))
    assert fresh.level == params.output_level
    assert steps[-1] == (5, 5)
    decryptor = ckks.Decryptor(secret)
    error = decryptor.error(fresh, x)
    assert 0 < error <= fresh.error_bound
    assert error < 2.0**-9
    assert decryptor.error(refresher.refresh_real(c), x) < 2.0**-9
    [one] = refresher.refresh_many([c])
    assert one.level == params.output_level
    square = refresher.evaluator().mul_rescale(fresh, fresh)
    assert decryptor.error(square, x**2) < 2.0**-8
    assert params.usable_levels == 4
    assert params.predicted_bits(0.5) > 10
    with pytest.raises(sd.LevelError):
        refresher.refresh(refresher.evaluator().drop_to(c, 0))
    with pytest.raises(sd.PlanError, match="take A, A12, A50, B, C or D"):
        ckks.BootstrapParams("E")
    with pytest.raises(sd.SudareError, match=r"GB|bytes"):
        ckks.Bootstrapper(keys, 1000)


def test_two_refreshes_in_one() -> None:
    """Set A50: nearly fifty bits are left, and a product is rescaled by both primes of its level."""
    params = ckks.BootstrapParams("A50", insecure=10)
    secret = ckks.SecretKey.generate(params.params)
    refresher = ckks.Bootstrapper(ckks.BootstrapKeys.generate(secret, params), threads=2)
    x = RNG.uniform(-1, 1, params.slots)
    plain = ckks.Encoder(params.params).encode(x, 1.0, level=params.input_level)
    c = ckks.Encryptor.with_secret_key(secret).encrypt(plain)
    steps: list[tuple[int, int]] = []
    fresh = refresher.refresh(c, progress=lambda done, total: steps.append((done, total)))
    # Progress is read now and then: short steps may be missing, the last one is not.
    assert steps == sorted(set(steps))
    assert steps[-1] == (10, 10)
    assert {total for _, total in steps} == {10}
    decryptor, server = ckks.Decryptor(secret), refresher.evaluator()
    assert decryptor.error(fresh, x) < 2.0**-47
    assert params.usable_levels == 5
    square = server.rescale(server.mul_rescale(fresh, fresh))
    assert square.level == params.output_level - 2
    assert decryptor.error(square, x**2) < 2.0**-46


def long_work() -> Callable[[], Any]:
    """Work of seconds: keys of a large ring."""
    params = parameters(log_n=15, q_bits=[49] * 20, p_bits=[49], digit_limbs=1)
    generator = ckks.KeyGenerator(ckks.SecretKey.generate(params), threads=1)
    return lambda: generator.eval_keys(params.max_level, steps=list(range(1, 40)))


@pytest.mark.skipif(os.name == "nt", reason="a process sends itself SIGINT")
def test_interrupt() -> None:
    """Ctrl-C ends long work soon, and other threads go on meanwhile."""
    work, before = long_work(), signal.signal(signal.SIGINT, signal.default_int_handler)
    turns = 0
    sent = 0.0

    def send() -> None:
        nonlocal turns, sent
        # The interpreter's lock is free, or this would not count.
        while turns < 20:
            time.sleep(0.005)
            turns += 1
        sent = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=send)
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            work()
        assert time.monotonic() - sent < 2.0
        thread.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert turns == 20


MODULES = [ckks, bfv, bgv, tfhe]


def members() -> dict[str, Any]:
    """What is public of the four modules."""
    found: dict[str, Any] = {}
    for module in MODULES:
        assert module.__doc__
        for name in module.__all__:
            thing = getattr(module, name)
            found[f"{module.__name__}.{name}"] = thing
            if inspect.isclass(thing):
                for part in dir(thing):
                    if not part.startswith("_") or part in ("__new__",):
                        found[f"{module.__name__}.{name}.{part}"] = getattr(thing, part)
    return found


@pytest.mark.parametrize("name", members())
def test_says_what_it_does(name: str) -> None:
    """Every class, method, property and function says what it does, and names errors that there are."""
    if name.endswith("__new__"):
        return
    text = inspect.getdoc(members()[name])
    assert text, "no docstring"
    assert re.search(r"\w.*[.:]", text), text
    for error in re.findall(r"`(\w+Error)`", text):
        assert issubclass(getattr(sd, error), sd.SudareError)


def test_names_are_rusts() -> None:
    """Classes, methods, properties and functions are called as in the Rust crates, but for six."""
    code = [
        re.sub(r"#\[cfg\(test\)\]\s*mod tests.*", "", path.read_text(), flags=re.DOTALL)
        for crate in ("ring", "rlwe", "exact", "he", "tfhe", "lattigo")
        for path in (ROOT / "crates" / crate / "src").rglob("*.rs")
    ]
    known = set(re.findall(r"\b(?:fn|struct|enum) (\w+)|^\s+pub (\w+):", "\n".join(code), re.MULTILINE))
    rust = {name for names in known for name in names}
    # NumPy's word for bytes, a word that Python has taken, two figures of types that Python does not have,
    # and the JSON of parameters, which Rust names by their scheme.
    own = {"nbytes", "not_", "releases_left", "predicted_bits", "from_json", "to_json"}
    assert {name.split(".")[-1] for name in members() if not name.endswith("__new__")} - rust == own
