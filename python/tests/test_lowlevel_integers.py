"""Low-level BFV and BGV: exact against NumPy, noise within its bound, and what is refused."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sudare as sd
from sudare import bfv, bgv, ckks

RNG = np.random.default_rng(6)
T = 65537
STEPS = [1, 3, -2]


def parameters(**changes: Any) -> bfv.IntegerParams:
    """A small set without security."""
    own: dict[str, Any] = {"log_n": 10, "t": T, "q_bits": [47] * 4, "p_bits": [49]}
    return bfv.IntegerParams(**{**own, "security": "insecure", **changes})


@pytest.fixture(scope="module", params=[bfv, bgv], ids=["bfv", "bgv"])
def world(request: pytest.FixtureRequest) -> SimpleNamespace:
    """Keys, vectors and ciphertexts of one scheme."""
    scheme: ModuleType = request.param
    params = parameters()
    secret = scheme.SecretKey.generate(params)
    top = params.max_level
    elements = [(element, top) for element in params.sum_elements(True)]
    keys = scheme.KeyGenerator(secret).eval_keys(top, elements, steps=STEPS)
    encoder, encryptor = scheme.Encoder(params), scheme.Encryptor.with_secret_key(params, secret)
    x, y = (RNG.integers(-30000, 30000, params.slots) for _ in range(2))
    return SimpleNamespace(
        scheme=scheme,
        params=params,
        secret=secret,
        keys=keys,
        encoder=encoder,
        encryptor=encryptor,
        decryptor=scheme.Decryptor(params, secret),
        server=scheme.Evaluator(params, keys, threads=2),
        x=x,
        y=y,
        a=encryptor.encrypt(encoder.encode_signed(x)),
        b=encryptor.encrypt(encoder.encode_signed(y)),
    )


def check(w: SimpleNamespace, c: Any, wanted: Any) -> None:
    """A ciphertext holds what it should modulo t, and has at least the room for noise that it states."""
    found = w.encoder.decode_unsigned(w.decryptor.decrypt(c))
    assert (found == np.asarray(wanted) % T).all()
    assert 0 < c.headroom <= w.decryptor.noise_budget(c)


def test_parameters() -> None:
    """Of one's own and for a computation."""
    params = parameters()
    assert (params.t, params.has_slots, params.slots, params.row) == (T, True, 1024, 512)
    assert params == bfv.IntegerParams(log_n=10, t=T, q=params.q, p=params.p, security="insecure")
    assert params != parameters(t=257)
    assert not parameters(t=257 * 3).has_slots
    assert bfv.IntegerParams.from_bytes(params.to_bytes()) == params
    found = bfv.Requirements(T, depth=1, slots=True).bfv()
    assert found.security >= 128
    assert found.has_slots
    assert bfv.slot_modulus(20, 12) % 8192 == 1
    with pytest.raises(sd.SecurityError, match="over the limit"):
        parameters(security=128)
    with pytest.raises(sd.SudareError, match=r"1|plaintext"):
        parameters(t=1)
    with pytest.raises(sd.PlanError, match="slots"):
        bfv.Requirements(100, slots=True).bfv()
    with pytest.raises(sd.LevelError):
        params.log_limit(9)


def test_arithmetic(world: SimpleNamespace) -> None:
    """Sums, products and plaintexts."""
    w, s = world, world.server
    p = w.encoder.encode_signed(w.y)
    check(w, w.a, w.x)
    check(w, s.add(w.a, w.b), w.x + w.y)
    check(w, s.sub(w.a, w.b), w.x - w.y)
    check(w, s.negate(w.a), -w.x)
    check(w, s.add_plain(w.a, p), w.x + w.y)
    check(w, s.sub_plain(w.a, p), w.x - w.y)
    check(w, s.mul_plain(w.a, p), w.x * w.y)
    check(w, s.mul_integer(w.a, -7), -7 * w.x)
    product = s.mul(w.a, w.b)
    assert len(product.parts()) == 3
    check(w, product, w.x * w.y)
    check(w, s.relinearize(product), w.x * w.y)
    check(w, s.mul_relin(w.a, w.b), w.x * w.y)
    check(w, s.square(w.a), w.x**2)
    check(w, s.dot([w.a, w.b], [w.b, w.b]), w.x * w.y + w.y**2)
    check(w, s.dot_relin([w.a, w.b], [w.b, w.b]), w.x * w.y + w.y**2)
    low = s.drop_to(w.a, 1)
    assert low.level == 1
    check(w, low, w.x)
    check(w, s.add(low, w.b), w.x + w.y)
    s.reset_counters()
    s.mul_relin(w.a, w.b)
    assert (s.counters()["mult"], s.counters()["relin"]) == (1, 1)


def test_rotations(world: SimpleNamespace) -> None:
    """Both rows turn; sums of rows and of all."""
    w, s = world, world.server
    rows = w.x.reshape(2, -1)
    for step in STEPS:
        check(w, s.rotate_rows(w.a, step), np.roll(rows, -step, axis=1).ravel())
    for step, c in zip(STEPS, s.rotate_many(w.a, STEPS), strict=True):
        check(w, c, np.roll(rows, -step, axis=1).ravel())
    check(w, s.rotate_columns(w.a), rows[::-1].ravel())
    check(w, s.automorphism(w.a, w.params.row_swap_element()), rows[::-1].ravel())
    check(w, s.sum_slots(w.a, columns=True), np.full(w.params.slots, w.x.sum()))
    check(w, s.sum_slots(w.a, columns=False), np.repeat(rows.sum(axis=1), w.params.row))
    check(w, s.sum_of_automorphisms(w.a, [1, w.params.row_swap_element()]), (rows + rows[::-1]).ravel())
    with pytest.raises(sd.MissingKeyError, match="rotation by 77"):
        s.rotate_rows(w.a, 77)


def test_encoding(world: SimpleNamespace) -> None:
    """Slots and coefficients, with and without signs; values that t does not hold."""
    e, n = world.encoder, world.params.degree
    p = e.encode_signed([3, -4], "coefficients")
    assert p.coefficients()[:3].tolist() == [3, T - 4, 0]
    assert e.decode_signed(p, "coefficients")[:3].tolist() == [3, -4, 0]
    assert e.decode_unsigned(e.encode_unsigned([65536, 1]))[:2].tolist() == [65536, 1]
    assert e.decode_signed(e.encode_signed([40000], modulo=True))[0] == 40000 - T
    own = world.scheme.Plaintext.from_coefficients(world.params, np.arange(n))
    assert (own.coefficients() == np.arange(n)).all()
    for given in (np.array([1, 2], "i1"), np.array([1, 2], "u4"), [True, 2], np.array([1, 0, 2])[::2]):
        assert e.decode_signed(e.encode_signed(given))[:2].tolist() == [1, 2]
        assert e.decode_signed(e.encode_unsigned(given))[:2].tolist() == [1, 2]
    for bad in ([1.0], [[1]], ["a"], np.array([1], "u8")):
        with pytest.raises(sd.InputError, match="integers of 64 bits with a sign"):
            e.encode_signed(bad)
    with pytest.raises(sd.InputError, match="without a sign"):
        e.encode_unsigned([-1])
    with pytest.raises(sd.InputError, match=r"40000|modulus|modulo"):
        e.encode_signed([40000])
    with pytest.raises(sd.ShapeError):
        e.encode_signed(np.zeros(n + 1, int))
    with pytest.raises(sd.InputError, match='"slots" or "coefficients"'):
        e.encode_signed([1], "rows")
    with pytest.raises(sd.PlanError, match="slots"):
        world.scheme.Encoder(parameters(t=100)).encode_signed([1], "slots")


def test_bytes_and_parts(world: SimpleNamespace) -> None:
    """Ciphertexts travel, residues are arrays, and no scheme takes the other's."""
    w = world
    c = w.scheme.Ciphertext.from_bytes(w.params, w.a.to_bytes())
    check(w, c, w.x)
    parts = w.a.parts()
    assert [p.shape for p in parts] == [(4, 1024)] * 2
    check(w, w.a.with_parts(parts), w.x)
    assert w.a.primes == w.params.q
    p = w.encoder.encode_signed(w.x)
    assert (w.scheme.Plaintext.from_bytes(w.params, p.to_bytes()).coefficients() == p.coefficients()).all()
    other = bgv if w.scheme is bfv else bfv
    with pytest.raises(sd.FormatError):
        other.Ciphertext.from_bytes(w.params, w.a.to_bytes())
    with pytest.raises(TypeError):
        other.Evaluator(w.params, w.keys).negate(w.a)
    with pytest.raises(sd.KeyMismatchError):
        w.scheme.Evaluator(parameters(q_bits=[46] * 4), w.keys)
    with pytest.raises(sd.KeyMismatchError, match=r"plaintext modulus|257"):
        w.scheme.Decryptor(parameters(t=257), w.secret).decrypt(w.a)


def test_public_key_and_levels(world: SimpleNamespace) -> None:
    """Encryption under the public key, and at a level."""
    w = world
    public = w.scheme.KeyGenerator(w.secret).public_key()
    encryptor = w.scheme.Encryptor.with_public_key(w.params, public)
    c = encryptor.encrypt(w.encoder.encode_signed(w.x), level=2)
    assert c.level == 2
    check(w, c, w.x)
    with pytest.raises(sd.LevelError):
        encryptor.encrypt(w.encoder.encode_signed(w.x), level=4)


def test_too_many_products(world: SimpleNamespace) -> None:
    """Noise that could reach the message is refused before anything is computed."""
    powers = [world.a]

    def squared() -> None:
        for _ in range(20):
            powers.append(world.server.square(powers[-1]))

    with pytest.raises(sd.PrecisionError):
        squared()
    assert len(powers) > 1
    assert powers[-1].headroom > 0


@pytest.mark.parametrize("scheme", [bfv, bgv], ids=["bfv", "bgv"])
def test_refresh(scheme: ModuleType) -> None:
    """The same values with new levels, exactly."""
    params = scheme.RefreshParams("X15", insecure=10)
    secret = scheme.SecretKey.generate(params.params)
    keys = scheme.RefreshKeys.generate(secret, params)
    refresher = scheme.Refresher(keys, threads=2)
    encoder, server = scheme.Encoder(params.params), refresher.evaluator()
    x = RNG.integers(0, 1000, params.params.slots)
    encryptor = scheme.Encryptor.with_secret_key(params.params, secret)
    c = encryptor.encrypt(encoder.encode_signed(x), level=params.output[0])
    square = server.drop_to(server.square(c), params.input[0])
    steps: list[tuple[int, int]] = []
    fresh = refresher.refresh(square, progress=lambda done, total: steps.append((done, total)))
    assert steps[-1] == (4, 4)
    assert fresh.level == params.output[0] > square.level
    found = encoder.decode_unsigned(scheme.Decryptor(params.params, secret).decrypt(fresh))
    t = params.params.t
    assert (found == x**2 % t).all()
    again = server.square(fresh)
    found = encoder.decode_unsigned(scheme.Decryptor(params.params, secret).decrypt(again))
    assert (found == [pow(int(v), 4, t) for v in x]).all()
    assert scheme.RefreshKeys.from_bytes(params, keys.to_bytes()).nbytes == keys.nbytes
    with pytest.raises(sd.SudareError, match=r"GB|bytes"):
        scheme.Refresher(keys, 1000)


def test_one_secret_key_for_all() -> None:
    """Keys belong to the ring and its primes: BFV and BGV share them, CKKS has another set."""
    params = parameters()
    secret = bfv.SecretKey.generate(params)
    assert bgv.SecretKey is bfv.SecretKey is ckks.SecretKey
    x = bgv.Encryptor.with_secret_key(params, secret).encrypt(bgv.Encoder(params).encode_signed([5]))
    assert bgv.Encoder(params).decode_signed(bgv.Decryptor(params, secret).decrypt(x))[0] == 5
    other = ckks.Params(log_n=10, q=params.q, p=params.p, log_scale=40, security="insecure")
    with pytest.raises(sd.KeyMismatchError):
        ckks.Encryptor.with_secret_key(secret).encrypt(ckks.Encoder(other).encode([0.5], 1.0))
