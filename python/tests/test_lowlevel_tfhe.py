"""Low-level TFHE: gates, tables, noise against its formula, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
import sudare as sd
from sudare import tfhe


def world(name: str) -> SimpleNamespace:
    """Keys of a set."""
    params = tfhe.TfheParams(name)
    client = tfhe.ClientKey.generate(params, threads=2)
    return SimpleNamespace(params=params, client=client, server=client.server_key())


@pytest.fixture(scope="module")
def bits() -> SimpleNamespace:
    """A set of gates."""
    return world("insecure_test_gates")


@pytest.fixture(scope="module")
def ints() -> SimpleNamespace:
    """A set of integers of 2 + 2 bits."""
    return world("insecure_test")


def test_parameters() -> None:
    """By name, of one's own, found by the search."""
    gates = tfhe.TfheParams("gates")
    literal = gates.literal
    assert (literal["plaintext"], literal["security"], literal["lwe_dimension"]) == ("bit", 128, 640)
    assert gates.log_failure <= -128
    assert tfhe.TfheParams("insecure_test", **literal) == gates
    assert tfhe.TfheParams.from_bytes(gates.to_bytes()) == gates
    own = tfhe.TfheParams("insecure_test", plaintext=(3, 1), lwe_noise=("t_uniform", 9), log_n=11)
    assert (own.space, own.literal["lwe_noise"], own.literal["log_n"]) == (16, ("t_uniform", 9), 11)
    assert own != tfhe.TfheParams("insecure_test")
    assert tfhe.TfheParams.derive((1, 1), 4, -40.0).literal["security"] == 128
    with pytest.raises(sd.SecurityError):
        tfhe.TfheParams("gates", lwe_dimension=320)
    with pytest.raises(sd.PrecisionError, match="fails with probability"):
        tfhe.TfheParams("insecure_test", lwe_noise=("uniform", 2**29))
    with pytest.raises(sd.SudareError, match="message_2_carry_2"):
        tfhe.TfheParams("message_3")
    with pytest.raises(sd.InputError, match="gaussian"):
        tfhe.TfheParams("gates", glwe_noise=("normal", 3.0))  # type: ignore[arg-type]
    with pytest.raises(sd.InputError, match="tuple of the bits"):
        tfhe.TfheParams("gates", plaintext="int")  # type: ignore[arg-type]


def test_gates(bits: SimpleNamespace) -> None:
    """Every gate on every pair, one by one and side by side."""
    plain: dict[str, Callable[[bool, bool], bool]] = {
        "and": lambda a, b: a and b,
        "nand": lambda a, b: not (a and b),
        "or": lambda a, b: a or b,
        "nor": lambda a, b: not (a or b),
        "xor": lambda a, b: a != b,
        "xnor": lambda a, b: a == b,
        "and_not": lambda a, b: a and not b,
        "or_not": lambda a, b: a or not b,
    }
    c, s = bits.client, bits.server
    both = {x: c.encrypt_bit(x) for x in (False, True)}
    jobs = [(name, x, y) for name in plain for x in both for y in both]
    wanted = [bool(plain[name](x, y)) for name, x, y in jobs]
    assert [c.decrypt_bit(s.gate(name, both[x], both[y])) for name, x, y in jobs] == wanted
    assert [c.decrypt_bit(z) for z in s.gates([(n, both[x], both[y]) for n, x, y in jobs])] == wanted
    assert not c.decrypt_bit(s.not_(both[True]))
    assert [c.decrypt_bit(s.mux(both[k], both[True], both[False])) for k in both] == [False, True]
    choices = [(both[k], both[True], both[False]) for k in both]
    assert [c.decrypt_bit(z) for z in s.muxes(choices)] == [False, True]
    assert c.decrypt_bit(s.gate("and", s.trivial_bit(True), both[True]))
    with pytest.raises(sd.InputError, match="nand"):
        s.gate("imp", both[True], both[True])
    with pytest.raises(sd.UnsupportedError, match="hold bits"):
        c.encrypt_int(1)
    with pytest.raises(sd.KeyMismatchError):
        tfhe.ClientKey.generate(bits.params).decrypt_bit(both[True])


def test_tables(ints: SimpleNamespace) -> None:
    """Programmable bootstraps, of one number, of two, and several tables at once."""
    c, s, p = ints.client, ints.server, ints.params
    assert (p.space, s.message_space, s.largest_noise) == (16, 4, 5)
    square = tfhe.LookupTable(p, [x * x % 16 for x in range(16)])
    product = tfhe.LookupTable(p, [(x // 4) * (x % 4) for x in range(16)])
    xs = [c.encrypt_int(x) for x in range(4)]
    assert [c.decrypt_int(s.lookup(x, square)) for x in xs] == [0, 1, 4, 9]
    assert [c.decrypt_int(y) for y in s.lookups([(x, square) for x in xs])] == [0, 1, 4, 9]
    assert [c.decrypt_int(s.lookup2(x, xs[3], product)) for x in xs] == [0, 3, 6, 9]
    assert c.decrypt_int(s.add_int(xs[3], xs[2])) == 5
    assert c.decrypt_int(s.add_plain_int(xs[3], 2)) == 5
    assert c.decrypt_int(s.sub_from_plain_int(3, xs[2])) == 1
    assert c.decrypt_int(s.mul_plain_int(xs[3], 4)) == 12
    assert c.decrypt_int(s.add_int(s.trivial_int(1), xs[1])) == 2
    assert c.decrypt_int(c.encrypt_int_with_carry(13)) == 13
    two = tfhe.LookupTable.interleaved(p, [[3, 2, 1, 0], [0, 1, 0, 1]])
    assert two.tables == 2
    assert [c.decrypt_int(y) for y in s.lookup_many(xs[1], two)] == [2, 1]
    multi = s.lookup_multi(xs[2], [[x % 2 for x in range(16)], [x // 2 for x in range(16)]])
    assert [c.decrypt_int(y) for y in multi] == [0, 1]
    assert square.coefficients().shape == (1024,)
    total = s.add_int(xs[3], xs[3])
    assert (total.largest, total.noise) == (6, 2)
    with pytest.raises(sd.SudareError, match=r"carry|space|16"):
        s.add_int(s.mul_plain_int(xs[3], 4), s.mul_plain_int(xs[3], 4))
    with pytest.raises(sd.ShapeError):
        tfhe.LookupTable(p, [1, 2, 3])
    with pytest.raises(sd.SudareError):
        tfhe.LookupTable(p, [16] * 16)
    with pytest.raises(sd.SudareError):
        c.encrypt_int(4)


def test_noise(ints: SimpleNamespace) -> None:
    """Measured noise of bootstraps has the variance of the formula; of a fresh ciphertext it is less.

    The formula is an expectation over keys. Under one key as short as this set's, the variance has a standard
    deviation of 13 %, so the mean is over 16 keys.
    """
    c, p = ints.client, ints.params
    identity = tfhe.LookupTable(p, np.arange(16))

    def measure(client: tfhe.ClientKey) -> float:
        """Mean square of the noise of 100 bootstraps."""
        out = client.server_key().lookups([(client.encrypt_int(i % 4), identity) for i in range(100)])
        return float(np.mean([client.noise(x) ** 2 for x in out]))

    measured = np.mean([measure(tfhe.ClientKey.generate(p, threads=2)) for _ in range(16)])
    assert 0.7 < measured / p.output_variance < 1.3
    fresh = np.mean([c.noise(c.encrypt_int(3)) ** 2 for _ in range(100)])
    assert fresh < measured
    assert p.decision_variance(25) > p.decision_variance(1) > 0
    assert p.switched_variance(p.output_variance) > p.output_variance


def test_words_and_bytes(bits: SimpleNamespace, ints: SimpleNamespace) -> None:
    """LWE ciphertexts as arrays; keys, parameters and bits travel."""
    x = bits.client.encrypt_bit(True)
    words = x.words()
    assert words.dtype == np.uint64
    assert len(words) == bits.params.literal["rank"] * 2 ** bits.params.literal["log_n"] + 1
    assert (words < x.modulus).all()
    assert x.modulus == bits.params.q
    assert abs(bits.client.noise(x)) < 1e-6
    again = tfhe.EncryptedBit.from_bytes(bits.params, x.to_bytes(bits.params))
    assert (again.words() == words).all()
    client = tfhe.ClientKey.from_bytes(bits.params, bits.client.to_bytes())
    assert client.decrypt_bit(again)
    server = tfhe.ServerKey.from_bytes(bits.params, bits.server.to_bytes())
    assert server.id == client.id == x.key
    assert not client.decrypt_bit(server.gate("nand", again, again))
    assert "hidden" in repr(client)
    with pytest.raises(sd.KeyMismatchError):
        tfhe.ServerKey.from_bytes(ints.params, bits.server.to_bytes())
    with pytest.raises(sd.FormatError):
        tfhe.ServerKey.from_bytes(bits.params, x.to_bytes(bits.params))
