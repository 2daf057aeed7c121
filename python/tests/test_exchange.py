"""Exchange with Lattigo: what its version 6.2.0 wrote (crates/lattigo/tests/data), and its bytes again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import sudare as sd
from numpy.typing import NDArray
from sudare import bfv, bgv, ckks

DATA = Path(__file__).parents[2] / "crates/lattigo/tests/data"
NAME = b"a key of Lattigo"

Real = tuple[ckks.Exchange, ckks.SecretKey]
#: A module of integers, its exchange and the secret key; both exchanges have the same methods.
Whole = tuple[ModuleType, bgv.Exchange, bgv.SecretKey]


def data(name: str) -> bytes:
    return (DATA / name).read_bytes()


@pytest.fixture(scope="module")
def real() -> Real:
    exchange = ckks.Exchange.from_json((DATA / "ckks/params.json").read_text(), "insecure")
    return exchange, exchange.read_secret_key(data("ckks/secret"), NAME)


@pytest.fixture(params=[bfv, bgv], scope="module")
def whole(request: pytest.FixtureRequest) -> Whole:
    exchange = request.param.Exchange.from_json((DATA / "exact/params.json").read_text(), "insecure")
    return request.param, exchange, exchange.read_secret_key(data("exact/secret"), NAME)


def values(slots: int) -> tuple[NDArray[np.complex128], NDArray[np.float64]]:
    """The formulas of the peer that wrote the files."""
    i = np.arange(slots)

    def part(a: int, b: int, m: int) -> NDArray[np.float64]:
        return (a * i + b) % m / (m // 2) - 1.0

    return part(7, 3, 41) + 1j * part(5, 1, 37), part(11, 2, 29)


def test_ckks_of_lattigo(real: Real) -> None:
    exchange, secret = real
    params, encoder, decryptor = exchange.params, ckks.Encoder(exchange.params), ckks.Decryptor(secret)
    x, y = values(params.slots)
    plain, slots = exchange.read_plaintext(data("ckks/x.pt"), 1.5)
    assert slots == params.slots
    assert np.abs(encoder.decode_complex(plain) - x).max() <= plain.error_bound
    a, slots = exchange.read_ciphertext(data("ckks/x.ct"), secret, bound=1.5, noise="public_key")
    b, _ = exchange.read_ciphertext(data("ckks/y.ct"), NAME, bound=1.0, noise="secret_key")
    assert slots == params.slots
    assert a.key == b.key == secret.id
    server = ckks.Evaluator(params, exchange.read_eval_keys(data("ckks/keys"), secret))
    under = ckks.Encryptor.with_public_key(exchange.read_public_key(data("ckks/public"), secret))
    for found, wanted in (
        (a, x),
        (server.mul_rescale(a, b), x * y),
        (server.rotate(a, 1), np.roll(x, -1)),
        (server.conjugate(a), x.conj()),
        (under.encrypt(plain), x),
    ):
        assert decryptor.error(found, wanted) <= found.error_bound
        again, _ = exchange.read_ciphertext(
            exchange.write_ciphertext(found), secret, bound=found.bound, noise=found.noise
        )
        assert decryptor.error(again, wanted) <= again.error_bound
    few, slots = exchange.read_ciphertext(data("ckks/few.ct"), secret, bound=1.5, noise="secret_key")
    assert slots == 8
    assert decryptor.error(few, np.resize(x[:8], params.slots)) <= few.error_bound
    assert exchange.write_ciphertext(few, slots) == data("ckks/few.ct")


def test_ckks_is_written_as_the_same_bytes(real: Real) -> None:
    exchange, secret = real
    assert exchange.to_json() == (DATA / "ckks/params.json").read_text()
    assert exchange.write_secret_key(secret) == data("ckks/secret")
    assert exchange.write_eval_keys(exchange.read_eval_keys(data("ckks/keys"), secret)) == data("ckks/keys")
    assert exchange.write_plaintext(exchange.read_plaintext(data("ckks/x.pt"), 1.5)[0]) == data("ckks/x.pt")
    public = exchange.write_public_key(secret)
    assert len(public) == len(data("ckks/public"))
    assert public != data("ckks/public")
    assert exchange.read_public_key(public, secret).id == secret.id


def test_integers_of_lattigo(whole: Whole) -> None:
    scheme, exchange, secret = whole
    params = exchange.params
    code, private = scheme.Encoder(params), scheme.Decryptor(params, secret)
    i = np.arange(params.slots, dtype=np.uint64)
    x, y = (3 * i * i + 5 * i + 1) % params.t, (7 * i + 2) % params.t
    plain, slots = exchange.read_plaintext(data("exact/x.pt"))
    assert slots == params.slots
    assert (code.decode_unsigned(plain) == x).all()
    own = "exact/bfv-y.ct" if scheme is bfv else "exact/y.ct"
    a, slots = exchange.read_ciphertext(data("exact/x.ct"), NAME, noise="public_key")
    b, _ = exchange.read_ciphertext(data(own), secret, noise="secret_key")
    assert slots == params.slots
    assert a.key == b.key == secret.id
    server = scheme.Evaluator(params, exchange.read_eval_keys(data("exact/keys"), secret))
    turned = np.concatenate([np.roll(row, -1) for row in x.reshape(2, -1)])
    for c, wanted in (
        (a, x),
        (b, y),
        (server.rotate_rows(a, 1), turned),
        (server.mul_relin(b, b), y * y % params.t),
    ):
        again, _ = exchange.read_ciphertext(exchange.write_ciphertext(c), secret, noise=c.noise)
        assert (code.decode_unsigned(private.decrypt(again)) == wanted).all()
        assert again.headroom <= private.noise_budget(again)
    # As the same bytes.
    assert exchange.to_json() == (DATA / "exact/params.json").read_text()
    assert exchange.write_secret_key(secret) == data("exact/secret")
    assert exchange.write_ciphertext(b) == data(own)
    assert exchange.write_eval_keys(exchange.read_eval_keys(data("exact/keys"), secret)) == data("exact/keys")
    assert (code.decode_unsigned(exchange.read_plaintext(exchange.write_plaintext(plain))[0]) == x).all()
    assert exchange.bfv_scale(0) == -params.q[0] % params.t


def test_our_objects_go_there_and_back() -> None:
    params = ckks.Params(log_n=12, q_bits=[50, 35], p_bits=[50], log_scale=35, security="insecure")
    exchange, secret = ckks.Exchange(params), ckks.SecretKey.generate(params)
    same = ckks.Exchange.from_json(exchange.to_json(), "insecure")
    assert same.params.q == params.q
    assert same.params.log_qp == params.log_qp
    # Without a name the key gets one at random, and its ciphertexts follow.
    theirs = same.read_secret_key(exchange.write_secret_key(secret))
    assert theirs.id != secret.id
    v = np.linspace(-1, 1, params.slots)
    x = ckks.Encryptor.with_secret_key(secret).encrypt(ckks.Encoder(params).encode(v, 1.0))
    c, slots = same.read_ciphertext(exchange.write_ciphertext(x), theirs, bound=1.0, noise=x.noise)
    assert slots == params.slots
    assert c.key == theirs.id
    assert ckks.Decryptor(theirs).error(c, v) <= c.error_bound


def test_primes_of_ones_own_are_the_set_of_the_json(real: Real) -> None:
    """One set, by its JSON or by its primes: keys and ciphertexts belong to both."""
    exchange, _ = real
    params = exchange.params
    by_primes = ckks.Params(
        log_n=params.log_n, log_scale=int(np.log2(params.scale)), q=params.q, p=params.p,
        digit_limbs=params.digit_limbs, security="insecure",
    )  # fmt: skip
    assert by_primes == params
    assert by_primes.hash == params.hash


@pytest.mark.parametrize("name", ["secret", "keys", "public", "x.ct", "x.pt"])
def test_hostile_bytes(real: Real, name: str) -> None:
    exchange, secret = real
    whole = data(f"ckks/{name}")
    read: Callable[[bytes], object] = {
        "secret": lambda data: exchange.read_secret_key(data, secret),
        "keys": lambda data: exchange.read_eval_keys(data, secret),
        "public": lambda data: exchange.read_public_key(data, secret),
        "x.ct": lambda data: exchange.read_ciphertext(data, secret, bound=1.5, noise="public_key"),
        "x.pt": lambda data: exchange.read_plaintext(data, 1.5),
    }[name]
    read(whole)
    for cut in [*range(0, 320, 7), len(whole) // 2, len(whole) - 1]:
        with pytest.raises(sd.SudareError):
            read(whole[:cut])
    with pytest.raises(sd.FormatError, match="hand over the object alone"):
        read(whole + b"\0")
    # Every count of the head at its extremes; residues over their primes at the end.
    with pytest.raises(sd.FormatError, match="not below it"):
        read(whole[:-8] + b"\xff" * 8)
    for at in range(0, 24, 8):
        for count in (2**20, 2**61, 2**64 - 1):
            with pytest.raises(sd.SudareError):
                read(whole[:at] + count.to_bytes(8, "little") + whole[at + 8 :])


def test_what_is_refused_says_what_to_write(real: Real) -> None:
    exchange, secret = real
    ciphertext = data("ckks/x.ct")
    with pytest.raises(sd.InputError, match="16 bytes of your own"):
        exchange.read_ciphertext(ciphertext, "mine", bound=1.5, noise="secret_key")  # type: ignore[arg-type]
    with pytest.raises(sd.InputError, match="secret_key"):
        exchange.read_ciphertext(ciphertext, secret, bound=1.5, noise="fresh")  # type: ignore[arg-type]
    for noise in (-1.0, float("nan"), float("inf")):
        with pytest.raises(sd.InputError, match="finite number"):
            exchange.read_ciphertext(ciphertext, secret, bound=1.5, noise=noise)
    with pytest.raises(sd.PrecisionError):
        exchange.read_ciphertext(ciphertext, secret, bound=1e30, noise="secret_key")
    c, _ = exchange.read_ciphertext(ciphertext, secret, bound=1.5, noise="public_key")
    with pytest.raises(sd.InputError, match="power of two"):
        exchange.write_ciphertext(c, 3)
    with pytest.raises(sd.UnsupportedError, match="slots"):
        exchange.write_ciphertext(c, 2**20)
    with pytest.raises(sd.FormatError, match="not of CKKS"):
        ckks.Exchange.from_json((DATA / "exact/params.json").read_text(), "insecure")
    with pytest.raises(sd.FormatError):
        ckks.Exchange.from_json("{", "insecure")
    with pytest.raises(sd.SecurityError):
        ckks.Exchange.from_json((DATA / "ckks/params.json").read_text())
    other = ckks.Params(log_n=11, q_bits=[40], log_scale=30, security="insecure")
    with pytest.raises(sd.KeyMismatchError):
        exchange.write_secret_key(ckks.SecretKey.generate(other))
    with pytest.raises(sd.UnsupportedError, match="Lattigo takes primes"):
        bgv.Exchange(bgv.IntegerParams(log_n=11, t=1024, q_bits=[40], security="insecure"))
