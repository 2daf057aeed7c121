"""What is made of other operations on encrypted integers, against NumPy."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sudare as sd
from conftest import NEWER, same
from numpy.typing import NDArray


@pytest.fixture(scope="module")
def ctx() -> sd.BitsContext:
    return sd.bits(parameters="insecure_test", threads=2)


def array(dtype: str, *values: Any) -> NDArray[Any]:
    return np.array(values, dtype)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_quotients_and_remainders(ctx: sd.BitsContext, dtype: str) -> None:
    info = np.iinfo(dtype)
    a = array(dtype, info.min, info.max, 100, 31)
    b = array(dtype, 3, 7, info.max, 31)
    if info.min:
        b[:3] = [-3, -128, -7]
    x, y = ctx.encrypt(a), ctx.encrypt(b)
    same(ctx, x // b, a // b)
    same(ctx, x[:2] % b[:2], a[:2] % b[:2])
    same(ctx, x // y, a // b)
    same(ctx, np.remainder(a[1:3], y[1:3]), a[1:3] % b[1:3])
    for d in (1, 5, 64):
        quotient, rest = divmod(x[:2], d)
        same(ctx, quotient, a[:2] // array(dtype, d))
        same(ctx, rest, a[:2] % array(dtype, d))
    zero = ctx.encrypt(np.zeros(1, dtype))
    same(ctx, x[:1] // zero, np.zeros(1, dtype))
    same(ctx, x[:1] % zero, np.zeros(1, dtype))
    same(ctx, 100 // y[:2], np.array(100, dtype) // b[:2])
    with pytest.raises(ZeroDivisionError, match="public zero"):
        x // 0
    with pytest.raises(sd.UnsupportedError, match="x // y"):
        x / 2
    with pytest.raises(sd.InputError, match="astype"):
        x // 1000


def test_powers(ctx: sd.BitsContext) -> None:
    a = array("uint8", 0, 1, 3, 200)
    x = ctx.encrypt(a)
    for exponent in (0, 1, 2, 5):
        same(ctx, x**exponent, a**exponent)
    same(ctx, np.power(x, 3), a**3)
    same(ctx, 3 ** ctx.encrypt(a[:1]), np.array([1], np.uint8))
    wide: Any = x.astype("uint16")
    none: list[Any] = [-1, 0.5, x]
    for bad in none:
        with pytest.raises(sd.SudareError, match=r"power|whole number|look the power up"):
            x**bad
    with pytest.raises(sd.UnsupportedError, match="uint8 exponents"):
        2**wide


def test_assignment(ctx: sd.BitsContext) -> None:
    a = np.arange(6, dtype=np.int16).reshape(2, 3)
    x = ctx.encrypt(a)
    kept, b = x[0], a.copy()
    x[0, 1], b[0, 1] = -7, -7
    x[:, 2], b[:, 2] = ctx.encrypt(array("int8", 50, -50)), [50, -50]
    x[1], b[1] = x[0], b[0]
    mask = b > 40
    x[mask], b[mask] = 9, 9
    same(ctx, x, b)
    same(ctx, kept, a[0])
    before = x.copy()
    x[x == 9] = 0
    same(ctx, x, np.where(b == 9, 0, b).astype(np.int16))
    same(ctx, before, b)
    for key, value in ((5, 1), (0, [1, 2]), (x, 1), (0, 2.5), (0, 40_000)):
        with pytest.raises((sd.SudareError, IndexError)):
            x[key] = value


def test_order(ctx: sd.BitsContext) -> None:
    rng = np.random.default_rng(4)
    for dtype, count in (("uint8", 7), ("int8", 6), ("bool", 5)):
        a = rng.integers(0 if dtype != "int8" else -128, 2 if dtype == "bool" else 127, count).astype(dtype)
        a[-1] = a[0]
        x = ctx.encrypt(a)
        same(ctx, np.sort(x), np.sort(a))
        same(ctx, x.argmax(), np.array(a.argmax(), np.intp))
        same(ctx, np.argmin(x, keepdims=True), np.array([a.argmin()], np.intp))
    b = rng.integers(0, 4, (3, 2)).astype(np.uint8)
    y = ctx.encrypt(b)
    same(ctx, y.argmax(axis=0), b.argmax(axis=0))
    y.sort(axis=0)
    same(ctx, y, np.sort(b, axis=0))
    same(ctx, np.sort(y, axis=None), np.sort(b, axis=None))
    with pytest.raises(sd.ShapeError, match="no axis 2"):
        np.sort(y, axis=2)


def test_reductions(ctx: sd.BitsContext) -> None:
    a = array("uint8", 1, 250, 3, 4, 5, 6).reshape(2, 3)
    b = a.astype(np.int8)
    x, y = ctx.encrypt(a), ctx.encrypt(b)
    same(ctx, x.cumsum(axis=1, dtype=np.uint16), a.cumsum(axis=1, dtype=np.uint16))
    same(ctx, np.cumsum(x, dtype="uint8"), np.cumsum(a, dtype="uint8"))
    same(ctx, x.cumprod(axis=1, dtype="uint8"), a.cumprod(axis=1, dtype="uint8"))
    same(ctx, x.prod(axis=0, dtype="uint8"), a.prod(axis=0, dtype="uint8"))
    same(ctx, x.mean(axis=1, dtype="uint16"), a.mean(axis=1, dtype="uint16"))
    same(ctx, y.mean(dtype="int16"), np.array(b.mean(dtype="int16")))
    same(ctx, x.clip(3, 100), a.clip(3, 100))
    same(ctx, np.clip(y, None, ctx.encrypt(array("int8", 2))), b.clip(None, 2))
    with pytest.raises(sd.UnsupportedError, match=r"divide by x\.size"):
        x.mean()


def test_reductions_by_ufuncs(ctx: sd.BitsContext) -> None:
    """Each argument is done or refused."""
    a = array("uint8", 1, 250, 3, 4, 5, 6).reshape(2, 3)
    x = ctx.encrypt(a)
    same(ctx, np.maximum.reduce(x), np.maximum.reduce(a))
    same(ctx, np.minimum.reduce(x, axis=None, keepdims=True), np.minimum.reduce(a, axis=None, keepdims=True))
    same(ctx, np.add.reduce(x, None, np.uint8), np.add.reduce(a, None, np.uint8))
    same(ctx, np.add.accumulate(x, 1, np.uint8), np.add.accumulate(a, 1, np.uint8))
    reduce: Any = np.add.reduce
    refused: list[tuple[str, Callable[[], Any]]] = [
        ("initial", lambda: np.add.reduce(x, initial=10)),
        ("where", lambda: np.maximum.reduce(x, where=a > 3, initial=0)),
        ("dtype", lambda: np.maximum.reduce(x, dtype=np.uint8)),
        ("out", lambda: np.add.reduce(x, out=np.zeros(3, np.uint64))),
        ("out", lambda: reduce(a, out=x[0])),
        ("out", lambda: np.add.accumulate(x, out=np.zeros((2, 3), np.uint64))),
    ]
    for word, reduction in refused:
        with pytest.raises(sd.UnsupportedError, match=f"leave {word}="):
            reduction()


@NEWER
def test_stacks_of_matrices(ctx: sd.BitsContext) -> None:
    a, b = np.arange(8, dtype=np.uint8).reshape(2, 2, 2), array("uint8", [1, 2], [3, 5])
    x = ctx.encrypt(a)
    for function in (
        np.trace,
        np.linalg.trace,
        np.diagonal,
        np.linalg.diagonal,
        lambda x: np.inner(b, x),
        lambda x: np.dot(b, x),
        lambda x: x[0].dot(x),
        lambda x: np.matvec(x, b),
        lambda x: np.matvec(b, x),
        lambda x: np.vecmat(b, x),
    ):
        same(ctx, function(x), function(a))


def test_choices_between_lists(ctx: sd.BitsContext) -> None:
    mask = array("bool", True, False)
    x = ctx.encrypt(mask)
    same(ctx, np.where(x, [1, 2], [3, 4]), np.where(mask, [1, 2], [3, 4]))
    same(ctx, np.where(x, array("uint8", 1, 2), 7), np.where(mask, array("uint8", 1, 2), 7))


def test_matrix_products(ctx: sd.BitsContext) -> None:
    rng = np.random.default_rng(6)
    a, b = rng.integers(0, 256, (2, 3)).astype(np.uint8), rng.integers(0, 256, (3, 2)).astype(np.uint8)
    x, y = ctx.encrypt(a), ctx.encrypt(b)
    same(ctx, x @ y, a @ b)
    same(ctx, a @ y, a @ b)
    same(ctx, np.matmul(x, b[:, 0]), a @ b[:, 0])
    same(ctx, x[0] @ y, a[0] @ b)
    same(ctx, x[0].dot(b[:, 1]), np.array(a[0] @ b[:, 1]))
    truth = a > 100
    same(ctx, ctx.encrypt(truth) @ truth.T, truth @ truth.T)
    with pytest.raises(sd.ShapeError, match=r"\(2, 3\) and \(2, 3\)"):
        x @ x
    with pytest.raises(sd.ShapeError, match="by a number with"):
        x @ 3


def test_tables_of_sixteen_bits(ctx: sd.BitsContext) -> None:
    everything = np.arange(1 << 16)
    a = array("uint16", 0, 255, 256, 40_000, 65_535)
    x = ctx.encrypt(a)
    bands = (everything >> 13).astype(np.uint8)
    same(ctx, x.lookup(bands), bands[a])
    low = (everything & 255).astype(np.uint8)
    same(ctx, x.lookup(low), low[a])
    flags = everything > 300
    same(ctx, x.lookup(flags), flags[a])
    signed = array("int16", -1, -32_768, 5)
    same(ctx, ctx.encrypt(signed).lookup(bands), bands[signed])
    for index, table in ((x, bands[:256]), (ctx.encrypt(array("uint32", 1)), bands)):
        with pytest.raises(sd.SudareError, match=r"65536 entries|astype\('uint16'\)"):
            index.lookup(table)


def test_comparisons_with_any_number(ctx: sd.BitsContext) -> None:
    for a in (array("uint8", 0, 7, 255), array("int8", -128, 7, 127), array("bool", True, False)):
        x = ctx.encrypt(a)
        for number in (
            -129,
            -128,
            -1,
            0,
            1,
            2,
            6.5,
            7,
            7.5,
            127,
            255,
            256,
            1000,
            math.inf,
            -math.inf,
            math.nan,
        ):
            wide = a.astype(float)
            assert np.array_equal(ctx.decrypt(x == number), wide == number)
            assert np.array_equal(ctx.decrypt(x != number), wide != number)
            assert np.array_equal(ctx.decrypt(x < number), wide < number)
            assert np.array_equal(ctx.decrypt(x <= number), wide <= number)
            assert np.array_equal(ctx.decrypt(number < x), number < wide)
            assert np.array_equal(ctx.decrypt(x >= number), wide >= number)


def test_fresh_arrays_are_as_small_as_on_the_wire(ctx: sd.BitsContext) -> None:
    x = ctx.encrypt(np.zeros(4000, np.uint8))
    assert x.nbytes < 1.5 * len(x.to_bytes())
    y = sd.load(x.to_bytes(), ctx)
    assert y.nbytes == x.nbytes
    same(ctx, y[:3] + 1, np.ones(3, np.uint8))


def test_long_work_is_told_before(ctx: sd.BitsContext, monkeypatch: pytest.MonkeyPatch) -> None:
    from sudare import _progress

    a = np.arange(40, dtype=np.uint8) + 90
    x = ctx.encrypt(a)
    monkeypatch.setattr(_progress, "LONG", 1e-4)
    with pytest.warns(sd.CostWarning, match=r"less of 40 elements takes about .* s") as told:
        found = x < 100
    assert told[0].filename == __file__
    same(ctx, found, a < 100)
    with warnings.catch_warnings():
        warnings.simplefilter("error", sd.CostWarning)
        with pytest.raises(sd.CostWarning):
            np.sort(x[:3])
    monkeypatch.setattr(_progress, "LONG", 1e9)
    total = x + x
    same(ctx, total & 15, (a + a) & 15)
    assert not total._core.waits
