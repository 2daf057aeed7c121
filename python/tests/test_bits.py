"""Encrypted integers and booleans against NumPy."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sudare as sd
from conftest import BINARY, same
from numpy.typing import NDArray

CASES = int(os.environ.get("SUDARE_BITS_CASES", "2"))
DTYPES = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]


@pytest.fixture(scope="module")
def ctx() -> sd.BitsContext:
    return sd.bits(parameters="insecure_test", threads=2)


def numbers(rng: np.random.Generator, dtype: str, *shape: int) -> NDArray[Any]:
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


OPERATIONS: list[Callable[[Any, Any], Any]] = [lambda x, y: x + y, lambda x, y: x - y, *BINARY]


@pytest.mark.parametrize("dtype", DTYPES)
def test_operators(ctx: sd.BitsContext, dtype: str) -> None:
    rng = np.random.default_rng(DTYPES.index(dtype))
    count = CASES if np.dtype(dtype).itemsize <= 2 else max(CASES // 2, 1)
    a, b = numbers(rng, dtype, count), numbers(rng, dtype, count)
    if count > 1:
        b[0] = a[0]
    x, y = ctx.encrypt(a), ctx.encrypt(b)
    for i, operation in enumerate(OPERATIONS):
        same(ctx, operation(x, y), operation(a, b))
        if i % 3 == 0:
            same(ctx, operation(x, b), operation(a, b))
            same(ctx, operation(a, y), operation(a, b))
    with np.errstate(over="ignore"):
        same(ctx, -x, -a)
        same(ctx, ~x, ~a)
        same(ctx, abs(x), abs(a))
        same(ctx, x * 5, a * np.array(5, a.dtype))
        if a.itemsize <= 2:
            same(ctx, x * y, a * b)
    for by in (0, 1, 4, 7):
        same(ctx, x << by, a << by)
        same(ctx, x >> by, a >> by)
    if a.itemsize == 1:
        amounts = np.resize(np.array([3, 100, 7, 8, 2, 0], dtype), count)
        same(ctx, x << ctx.encrypt(amounts), a << amounts)
        same(ctx, x >> ctx.encrypt(amounts), a >> amounts)


SHIFTED = [("uint8", "int32"), ("int8", "uint8"), ("int16", "int8"), ("bool", "uint8"), ("uint8", "bool")]


@pytest.mark.parametrize(("left", "right"), SHIFTED)
def test_shifts_promote(ctx: sd.BitsContext, left: str, right: str) -> None:
    a, b = (np.array([7, -95, 1, 100]) % 120).astype(left), np.array([6, 4, 0, 1]).astype(right)
    a = np.where([0, 1, 0, 0], -a, a).astype(left) if left.startswith("int") else a
    x, y = ctx.encrypt(a), ctx.encrypt(b)
    for shift in (np.left_shift, np.right_shift):
        for got in (shift(x, b), shift(a, y), shift(x, y)):
            same(ctx, got, shift(a, b))
        same(ctx, shift(x, 3), shift(a, 3))
    same(ctx, x << b, a << b)
    same(ctx, a >> y, a >> b)


def test_shifts_without_a_type(ctx: sd.BitsContext) -> None:
    a, b = np.array([1], np.int8), np.array([1], np.uint64)
    x = ctx.encrypt(a)
    shifts: list[Callable[[], Any]] = [
        lambda: x << b,
        lambda: x >> ctx.encrypt(b),
        lambda: a << ctx.encrypt(b),
    ]
    for shift in shifts:
        with pytest.raises(sd.UnsupportedError, match="int8 is not shifted by uint64"):
            shift()
    # A rotation is no function of NumPy's, and stays in its type.
    same(ctx, x.rotate_left(np.array([7], np.int32)), np.array([-128], np.int8))


def test_squares_of_booleans(ctx: sd.BitsContext) -> None:
    a = np.array([True, False])
    same(ctx, np.square(ctx.encrypt(a)), np.square(a))


def test_booleans(ctx: sd.BitsContext) -> None:
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    x, y = ctx.encrypt(a), ctx.encrypt(b)
    for i, operation in enumerate(OPERATIONS):
        if i != 1:
            same(ctx, operation(x, y), operation(a, b))
    same(ctx, ~x, ~a)
    same(ctx, x * y, a * b)
    same(ctx, x + np.uint8(3), a + np.uint8(3))
    same(ctx, np.logical_and(x, y), a & b)
    same(ctx, np.logical_not(x), ~a)
    same(ctx, x.any(), a.any())
    same(ctx, np.all(x), a.all())
    same(ctx, x.lookup(np.array([700, 9], "uint16")), np.array([700, 9], "uint16")[a.astype(int)])
    same(ctx, sd.where(x, y, b), np.where(a, b, b))
    with pytest.raises(TypeError):
        _ = x - y


def test_carries_wait(ctx: sd.BitsContext) -> None:
    rng = np.random.default_rng(5)
    for dtype in ("uint8", "int8", "uint16"):
        terms = [numbers(rng, dtype, 3) for _ in range(7)]
        x, a = ctx.encrypt(terms[0]), terms[0]
        for i, term in enumerate(terms[1:]):
            y = ctx.encrypt(term) if i != 3 else term
            x, a = (x - y, a - term) if i % 3 == 2 else (x + y, a + term)
            same(ctx, x, a)
        same(ctx, x.settle(), a)
        same(ctx, pickle.loads(pickle.dumps(x)), a)
        waiting = ctx.encrypt(terms[0]) + ctx.encrypt(terms[1])
        b = terms[0] + terms[1]
        for _ in range(2):
            same(ctx, waiting < terms[2], b < terms[2])
            same(ctx, waiting ^ waiting[::-1], b ^ b[::-1])
            same(ctx, ~waiting, ~b)
            same(ctx, waiting.astype("int32"), b.astype("int32"))
            same(ctx, sd.where(waiting == b[0], waiting, 1), np.where(b == b[0], b, b.dtype.type(1)))
    flags = rng.integers(0, 2, 11).astype(bool)
    same(ctx, ctx.encrypt(flags).sum(), flags.sum())
    counts = numbers(rng, "uint8", 6)
    same(ctx, ctx.encrypt(counts).sum(), counts.sum())


def test_choices_and_tables(ctx: sd.BitsContext) -> None:
    a, b = np.array([3, 250, 77], "uint8"), np.array([200, 4, 77], "uint8")
    x, y = ctx.encrypt(a), ctx.encrypt(b)
    same(ctx, sd.where(x < y, x, y), np.where(a < b, a, b))
    same(ctx, np.where(x == y, 1, y), np.where(a == b, np.uint8(1), b))
    same(ctx, sd.where(a > 5, x, y), np.where(a > 5, a, b))
    same(ctx, sd.where(x > 5, np.int16(-4), np.int16(9)), np.where(a > 5, np.int16(-4), np.int16(9)))
    same(ctx, sd.minimum(x, 100), np.minimum(a, np.uint8(100)))
    same(ctx, sd.maximum(100, x), np.maximum(a, np.uint8(100)))
    steps = (np.arange(256) // 100).astype("uint8")
    same(ctx, x.lookup(steps), steps[a])
    same(ctx, x.lookup(np.arange(256) > 76), (np.arange(256) > 76)[a])
    c = np.array([-1, -128, 5], "int8")
    same(ctx, ctx.encrypt(c).lookup(steps), steps[c])


def test_types_and_shapes(ctx: sd.BitsContext) -> None:
    rng = np.random.default_rng(3)
    a, b = numbers(rng, "uint8", 2, 3), numbers(rng, "int8", 3)
    x, y = ctx.encrypt(a), ctx.encrypt(b)
    same(ctx, x + y, a + b)
    same(ctx, x < y, a < b)
    same(ctx, x.astype("int32"), a.astype("int32"))
    same(ctx, y.astype("uint64"), b.astype("uint64"))
    same(ctx, x.astype(bool), a.astype(bool))
    same(ctx, x[1, ::-1], a[1, ::-1])
    same(ctx, x[:, np.newaxis, 1], a[:, np.newaxis, 1])
    same(ctx, x.T, a.T)
    same(ctx, x.reshape(3, 2), a.reshape(3, 2))
    same(ctx, np.concatenate([x, a], axis=1), np.concatenate([a, a], axis=1))
    same(ctx, np.stack([y, y]), np.stack([b, b]))
    same(ctx, x.sum(axis=0, dtype="uint8"), a.sum(axis=0, dtype="uint8"))
    same(ctx, np.max(x, axis=1), a.max(axis=1))
    same(ctx, np.min(y), b.min())
    same(ctx, next(iter(x)), a[0])
    empty = ctx.encrypt(np.array([], "uint8"))
    same(ctx, empty + empty, np.array([], "uint8"))
    assert len(x) == 2
    assert (x.ndim, x.size, x.dtype) == (2, 6, np.dtype("uint8"))


def test_client_and_server() -> None:
    client = sd.BitsClient(parameters="insecure_test", threads=1)
    a = np.array([5, -300], "int16")
    x = client.encrypt(a)
    with pytest.raises(sd.UnsupportedError, match="bind"):
        _ = x + x
    server: sd.BitsServer = pickle.loads(pickle.dumps(client.server()))
    assert server.key_id == client.key_id == x.key_id
    sent = x.to_bytes()
    assert x.nbytes < len(sent) < 5000
    received: sd.EncryptedBits = pickle.loads(pickle.dumps(x))
    y = server.bind(received) * server.plain(np.array([3, 7], "int16"))
    back = pickle.loads(pickle.dumps(y))
    np.testing.assert_array_equal(client.decrypt(back), a * np.array([3, 7], "int16"))
    again = sd.BitsClient.from_secret_bytes(client.params_bytes(), client.secret_bytes())
    np.testing.assert_array_equal(again.decrypt(again.load(sent)), a)
    assert server.wire_bytes == len(server.to_bytes()) < server.key_bytes / 2 + 1e6


def test_refusals(ctx: sd.BitsContext) -> None:
    x = ctx.encrypt(np.array([1, 2], "uint8"))
    other = sd.BitsClient(parameters="insecure_test").encrypt(np.array([1, 2], "uint8"))
    with pytest.raises(sd.KeyMismatchError):
        _ = x + other
    with pytest.raises(sd.KeyMismatchError):
        ctx.decrypt(other)
    with pytest.raises(sd.UnsupportedError, match="decrypt"):
        bool(x)
    with pytest.raises(sd.UnsupportedError, match="decrypt"):
        np.asarray(x)
    with pytest.raises(sd.UnsupportedError, match="float64"):
        ctx.encrypt([0.5])
    with pytest.raises(sd.UnsupportedError):
        _ = x + 0.5
    with pytest.raises(sd.UnsupportedError, match="NoneType"):
        _ = x == None  # noqa: E711
    with pytest.raises(sd.UnsupportedError):
        _ = ctx.encrypt(np.array([1], "uint64")) + ctx.encrypt(np.array([1], "int64"))
    with pytest.raises(sd.InputError):
        _ = x + 256
    with pytest.raises(sd.InputError):
        _ = x << -1
    with pytest.raises(sd.ShapeError):
        _ = x + ctx.encrypt(np.array([1, 2, 3], "uint8"))
    with pytest.raises(sd.ShapeError):
        x.lookup(np.array([1, 2, 3], "uint8"))
    with pytest.raises(sd.UnsupportedError):
        x.astype("uint32").lookup(np.array([1, 2, 3], "uint8"))
    with pytest.raises(sd.UnsupportedError):
        np.sqrt(x)
    with pytest.raises(sd.UnsupportedError, match="secret"):
        pickle.dumps(ctx)
    with pytest.raises(sd.FormatError):
        ctx.load(b"nothing")
    with pytest.raises(sd.SecurityError):
        sd.bits(security=80)
    with pytest.raises(sd.UnsupportedError):
        sd.bits(parameters="unknown")
    with pytest.raises(TypeError):
        hash(x)
    damaged = bytearray(x.to_bytes())
    damaged[300] ^= 1
    with pytest.raises(sd.FormatError):
        ctx.load(bytes(damaged))


def test_repr(ctx: sd.BitsContext) -> None:
    x = ctx.encrypt(np.zeros((2, 2), "uint16"))
    assert "uint16 (2, 2)" in repr(x)
    assert "MB" in repr(x)
    assert "insecure" in repr(ctx)
    assert "hidden" in repr(ctx)
    assert "on the wire" in repr(ctx.server())


def test_real_parameters() -> None:
    ctx = sd.bits(security=128)
    a, b = np.array([200], "uint8"), np.array([77], "uint8")
    x, y = ctx.encrypt(a), ctx.encrypt(b)
    same(ctx, x + y, a + b)
    same(ctx, x < y, a < b)
    assert "128-bit" in repr(ctx)


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("message_2_carry_2", "n = 832, N = 2^11"),
        ("message_2_carry_2_lwe_switch", "n = 880, N = 2^11"),
        ("message_2_carry_2_failure_64", "n = 768, N = 2^11"),
        ("message_2_carry_2_failure_40", "n = 800, N = 2^10"),
    ],
)
def test_every_set_decrypts(name: str, shape: str) -> None:
    client = sd.BitsClient(parameters=name)
    assert shape in repr(client)
    values = np.array([0, 1, 254, 255], "uint8")
    assert (client.decrypt(client.encrypt(values)) == values).all()
