"""Arrays of encrypted bits and small integers by tables, against NumPy's plain ones modulo a number."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sudare as sd

RNG = np.random.default_rng(11)
A, B = RNG.integers(0, 16, 40), RNG.integers(0, 16, 40)
LOW, FEW = RNG.integers(0, 8, 40), RNG.integers(0, 8, 40)


def made(bootstrap: Any, **more: Any) -> sd.SmallContext:
    """A set over a small ring without security."""
    return sd.context(bootstrap=bootstrap, security="insecure", threads=2, **more)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def ctx() -> sd.SmallContext:
    """Integers modulo up to 16."""
    return made("S15", rolls=[1, -1, 8, 9])


@pytest.fixture(scope="module")
def gates() -> sd.SmallContext:
    """Booleans."""
    return made("G15", rolls=[1])


OF_ONE: list[Callable[[Any], Any]] = [
    lambda x: x + 3,
    lambda x: 20 - x,
    lambda x: -x,
    lambda x: 3 * x - 1,
    lambda x: x * x,
    lambda x: x**3,
    lambda x: x // 3,
    lambda x: x % 5,
    lambda x: divmod(x, 7),
    lambda x: x & 5,
    lambda x: x ^ 15,
    lambda x: x << 1,
    lambda x: x >> 2,
    lambda x: x == 7,
    lambda x: x != 700,
    lambda x: x < 7.5,
    lambda x: x <= 3,
    lambda x: np.minimum(x, 9),
    lambda x: np.clip(x, 2, 12),
    lambda x: np.isin(x, [1, 2, 40]),
    lambda x: np.square(x),
    lambda x: np.logical_not(x),
    lambda x: x.astype(bool),
    lambda x: np.isnan(x),
    lambda x: np.where(True, x, x) if isinstance(x, np.ndarray) else x,
    lambda x: np.clip(x, min=2, max=12),
    lambda x: np.isin(x, np.array([None, 3])),
    lambda x: x == Fraction(3),
    lambda x: x < 10**400,
    lambda x: np.maximum(x, np.uint8(9)),
    lambda x: x & np.uint8(6),
]


@pytest.mark.parametrize("f", OF_ONE)
def test_functions_of_one_array_and_numbers(ctx: sd.SmallContext, f: Callable[[Any], Any]) -> None:
    found, wanted = ctx.decrypt(f(ctx.encrypt(A))), f(A)
    pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
    for x, y in pairs:
        assert x.dtype == (np.bool_ if y.dtype == np.bool_ else np.uint8)
        assert (x == (y if y.dtype == np.bool_ else y % 16)).all()


#: Numbers that no 64 bits hold, or no float exactly.
LARGE: list[Callable[[Any], Any]] = [
    lambda x: x**20,
    lambda x: x**249,
    lambda x: 2**x,
    lambda x: x**x,
    lambda x: x << 62,
    lambda x: x << x,
    lambda x: x * 2**40 * 3,
    lambda x: x * (2**63 - 1),
    lambda x: 2**70 - x,
    lambda x: x + (2**63 - 1),
]


@pytest.mark.parametrize("f", LARGE)
@pytest.mark.parametrize("modulus", [7, 10, 200, 256])
def test_large_numbers_are_exact(f: Callable[[Any], Any], modulus: int) -> None:
    """A table is that of Python's integers, which do not wrap around."""
    ctx = made("W16")
    a = np.arange(min(modulus, 100))
    found = ctx.decrypt(f(ctx.encrypt(a, modulus=modulus)))
    assert found.tolist() == [f(v) % modulus for v in a.tolist()]


def test_powers_by_a_plain_array() -> None:
    ctx = made("W16")
    a = np.arange(100)
    found = ctx.decrypt(ctx.encrypt(a, modulus=101) ** np.full(100, 20))
    assert found.tolist() == [pow(v, 20, 101) for v in a.tolist()]
    # NumPy's type of results is narrower than the modulus.
    x = ctx.encrypt(a)
    assert (ctx.decrypt(np.bitwise_count(x)) == np.bitwise_count(a)).all()
    assert (ctx.decrypt(x + np.full(100, 200, np.uint8)) == (a + 200) % 256).all()
    assert (ctx.decrypt(x - np.full(100, 2**64 - 1, np.uint64)) == (a + 1) % 256).all()
    y = ctx.encrypt(a, modulus=200)
    assert (ctx.decrypt(y + np.full(100, -100, np.int8)) == (a + 100) % 200).all()


REFUSED: list[Callable[[Any], Any]] = [
    *(lambda x: x @ np.ones((6, 2), int), lambda x: np.ones((2, 2), int) @ x, lambda x: x @ x.reshape(6, 2)),
    *(lambda x: x @ 3, lambda x: np.inner(x, x), lambda x: np.tensordot(x, np.ones((6, 2), int), 1)),
    *(lambda x: np.linalg.multi_dot([x, np.ones((6, 6), int), np.ones(6, int)]), lambda x: x @ (x > 3)),
    *(lambda x: np.vecdot(x, x), lambda x: np.matvec(x, np.ones(6, int)), lambda x: (x > 3) @ (x > 3)),
    *(
        lambda x: x**35.0,
        lambda x: x + 1e17,
        lambda x: x + 0.5,
        lambda x: x * 1e300,
        lambda x: x / 2,
        lambda x: x + np.inf,
    ),
    *(lambda x: x**-1, lambda x: x << -1, lambda x: x + Fraction(1, 2), lambda x: np.minimum(x, 2**70)),
    *(lambda x: divmod(x > 3, x < 2), lambda x: np.clip(x, 2, 12, out=np.zeros((2, 6), int))),
    *(lambda x: np.clip(x, 2, 12, where=False), lambda x: np.clip(x, 2, 12, dtype=float)),
]


@pytest.mark.parametrize("f", REFUSED)
@pytest.mark.filterwarnings("error")
def test_refused_not_computed_wrongly(ctx: sd.SmallContext, f: Callable[[Any], Any]) -> None:
    x = ctx.encrypt(np.arange(12).reshape(2, 6) % 5, largest=4)
    with pytest.raises(sd.UnsupportedError, match=r"sudare\.|decrypt|leave"):
        f(x)


def test_plain_operands_of_any_shape(ctx: sd.SmallContext) -> None:
    a = np.arange(12).reshape(4, 3)
    x = ctx.encrypt(a, largest=11)
    for plain in (np.array([1, 2, 3]), np.array([[1], [2], [3], [4]]), np.array([[4]])):
        assert (ctx.decrypt(x - plain) == (a - plain) % 16).all()
        assert (ctx.decrypt(plain - x) == (plain - a) % 16).all()
        assert (ctx.decrypt(plain == x) == (plain == a)).all()
    with pytest.raises(sd.ShapeError):
        _ = x + np.ones(4, int)
    for shape in ((5, 3), (4,), 2.5, (-1, 3)):
        with pytest.raises(sd.ShapeError):
            np.broadcast_to(x, shape)  # type: ignore[arg-type]


def test_names_of_the_package(ctx: sd.SmallContext, gates: sd.SmallContext) -> None:
    x, y = ctx.encrypt(LOW, largest=7), ctx.encrypt(FEW, largest=7)
    assert (ctx.decrypt(sd.maximum(x, y)) == np.maximum(LOW, FEW)).all()
    assert (ctx.decrypt(sd.minimum(5, y)) == np.minimum(5, FEW)).all()
    a, b = gates.encrypt([True, True, False]), gates.encrypt([True, False, False])
    assert gates.decrypt(sd.maximum(a, b)).tolist() == [True, True, False]
    assert gates.decrypt(sd.minimum(a, b)).tolist() == [True, False, False]
    with pytest.raises(sd.UnsupportedError, match=r"sudare\.table"):
        sd.where(x < y, x, y)


OF_TWO: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: x == y,
    lambda x, y: x != y,
    lambda x, y: x < y,
    lambda x, y: x >= y,
    lambda x, y: np.maximum(x, y),
    lambda x, y: np.minimum(x, y),
    lambda x, y: np.fmax(x, y),
]


@pytest.mark.parametrize("f", OF_TWO)
def test_functions_of_two_arrays(ctx: sd.SmallContext, f: Callable[[Any, Any], Any]) -> None:
    """Also of one that everybody sees, on either side."""
    wanted = f(LOW, FEW)
    wanted = wanted if wanted.dtype == np.bool_ else wanted % 16
    x, y = ctx.encrypt(LOW, largest=7), ctx.encrypt(FEW, largest=7)
    for found in (f(x, y), f(LOW, y), f(x, FEW)):
        assert (ctx.decrypt(found) == wanted).all()


def test_products_and_equality(ctx: sd.SmallContext) -> None:
    x, y = ctx.encrypt(LOW % 5, largest=4), ctx.encrypt(FEW, largest=7)
    assert (ctx.decrypt(x * y) == (LOW % 5) * FEW % 16).all()
    # Whether two numbers are equal takes no more room than they do.
    assert (ctx.decrypt(ctx.encrypt(A) == ctx.encrypt(B)) == (A == B)).all()
    with pytest.raises(sd.PlanError, match="largest=7"):
        _ = ctx.encrypt(A) < ctx.encrypt(B)
    with pytest.raises(sd.PlanError, match="largest=7"):
        _ = ctx.encrypt(A) * y
    with pytest.raises(sd.UnsupportedError, match=r"sudare\.table"):
        _ = x // y
    mean = (ctx.encrypt(LOW, largest=7) + y) // 2
    assert (ctx.decrypt(mean) == (LOW + FEW) // 2).all()


@pytest.mark.parametrize("name", ["G15", "S15", "W16"])
def test_booleans(name: str) -> None:
    ctx = made(name)
    a, b = RNG.integers(0, 2, (2, 3, 200)).astype(bool)
    x, y = ctx.encrypt(a), ctx.encrypt(b)
    functions: list[Callable[[Any, Any], Any]] = [
        *(lambda x, y: x & y, lambda x, y: x | y, lambda x, y: x ^ y, lambda x, y: ~x, lambda x, y: x < y),
        *(lambda x, y: x == y, lambda x, y: x >= y, lambda x, y: x + y, lambda x, y: x * y),
        *(lambda x, y: np.logical_and(x, y), lambda x, y: np.logical_not(y), lambda x, y: x & True),
    ]
    for f in functions:
        found = f(x, y)
        assert found.dtype == np.bool_
        assert (ctx.decrypt(found) == f(a, b)).all()
    assert (ctx.decrypt((x ^ y) & ~(x & y) | y) == ((a ^ b) & ~(a & b) | b)).all()
    count = x.astype("uint8") + y.astype("uint8")
    assert count.dtype == np.uint8
    assert (ctx.decrypt(count) == a.astype("uint8") + b).all()
    assert (ctx.decrypt(x + 2) == (a + 2) % 4).all()
    with pytest.raises(TypeError):
        _ = x - y


def test_tables(ctx: sd.SmallContext, gates: sd.SmallContext) -> None:
    x = ctx.encrypt(A)
    primes = [2, 3, 5, 7, 11, 13]
    assert (ctx.decrypt(sd.table(x, lambda v: v in primes)) == np.isin(A, primes)).all()
    values = RNG.integers(0, 16, 16)
    assert (ctx.decrypt(sd.table(x, values)) == values[A]).all()
    half, third, seven = sd.table(x, [lambda v: v // 2, lambda v: v // 3 * 1.0, lambda v: 7])
    assert (ctx.decrypt(half + third) == A // 2 + A // 3).all()
    assert (ctx.decrypt(seven) == 7).all()
    other = sd.table(x, lambda v: v % 5, modulus=5)
    assert other.modulus == 5
    assert (ctx.decrypt(other * 2) == A % 5 * 2 % 5).all()
    assert (ctx.decrypt(other > 2) == (A % 5 > 2)).all()
    flag = x > 7
    assert (ctx.decrypt(sd.table(flag, [4, 9])) == np.where(A > 7, 9, 4)).all()
    assert (ctx.decrypt(sd.table(flag, lambda v: 9 if v else 4)) == np.where(A > 7, 9, 4)).all()
    bits = gates.encrypt([True, False])
    assert gates.decrypt(sd.table(bits, lambda v: 3 if v else 1)).tolist() == [3, 1]
    # TFHE's arrays and plain ones have the same function.
    quick = sd.bits(parameters="insecure_test")
    y = quick.encrypt(np.array([-3, 4], np.int8))
    assert quick.decrypt(sd.table(y, lambda v: v * v % 100)).tolist() == [9, 16]
    assert quick.decrypt(sd.table(quick.encrypt([True, False]), [True, False])).tolist() == [False, True]
    assert sd.table(np.array([[1, 2]]), lambda v: v + 1).tolist() == [[2, 3]]
    assert sd.table([1, 0], [5, 6]).tolist() == [6, 5]
    double, odd = sd.table([1, 2], [lambda v: 2 * v, lambda v: v % 2 == 1])
    assert (double.tolist(), odd.tolist()) == ([2, 4], [True, False])


def test_what_a_table_refuses(ctx: sd.SmallContext) -> None:
    x = ctx.encrypt(A)
    for values in ([1, 2, 3], [5], [], [0] * 1025, np.zeros((16, 1), int), np.zeros((4, 4), int), 3):
        with pytest.raises(sd.ShapeError, match="one for each"):
            sd.table(x, values)
    with pytest.raises(sd.ShapeError):
        sd.table(x > 3, range(16))
    for modulus in (0, 1):
        with pytest.raises(sd.InputError, match="from 2 on"):
            sd.table(x, lambda v: 0, modulus=modulus)
        with pytest.raises(sd.InputError, match="from 2 on"):
            ctx.encrypt([0], modulus=modulus)
    for wrong in (lambda v: v - 1, lambda v: v + 1, [*range(15), 99]):
        with pytest.raises(sd.InputError, match="from 0 to 15"):
            sd.table(x, wrong)
    for wrong in (lambda v: v + 10**400, lambda v: Fraction(99)):
        with pytest.raises(sd.InputError, match="from 0 to 15"):
            sd.table(x, wrong)
    for none in (float("nan"), 0.5, float("inf"), "a", None, Fraction(10**30 + 1, 10**30)):
        with pytest.raises(sd.InputError, match="value 3 is not an integer"):
            sd.table(x, lambda v, none=none: none if v == 3 else v)
    with pytest.raises(sd.PlanError, match="larger tables"):
        sd.table(x, lambda v: v, modulus=17)
    with pytest.raises(sd.UnsupportedError, match="a table is plain"):
        sd.table(x, x)
    with pytest.raises(sd.InputError, match="modulus"):
        sd.table([1], lambda v: v, modulus=5)
    with pytest.raises(sd.InputError, match="modulus"):
        sd.table((2, 2), modulus=5)  # type: ignore[call-overload]
    for extra in ({"max_abs": 3}, {"max_abs": [1.0]}, {"security": 192}):
        with pytest.raises(sd.InputError, match="max_abs"):
            sd.table(x, lambda v: v, **extra)
    # Plain x is refused as encrypted x is.
    for place in (-1, 2, 2**70):
        with pytest.raises((sd.InputError, sd.UnsupportedError)):
            sd.table([1, place], [5, 6])
    with pytest.raises(sd.ShapeError):
        sd.table([1, 0], [[5, 6], [7, 8]])
    real = sd.context(depth=1, tile=4, security="insecure").encrypt([1.0])
    with pytest.raises(sd.UnsupportedError):
        sd.table(real, lambda v: v)


def test_shapes_and_shifts(ctx: sd.SmallContext) -> None:
    a = np.arange(64).reshape(8, 8) % 16
    x = ctx.encrypt(a)
    assert (ctx.decrypt(np.roll(x, 1)) == np.roll(a, 1)).all()
    assert (ctx.decrypt(np.roll(x, 1, axis=0)) == np.roll(a, 1, axis=0)).all()
    assert (ctx.decrypt(np.roll(x.ravel(), 9 - 64)) == np.roll(a.ravel(), 9)).all()
    y = x.reshape(2, 32)[None]
    assert y.shape == (1, 2, 32)
    assert len(x) == 8
    row, number = ctx.encrypt(a[2]), ctx.encrypt(5)
    assert (ctx.decrypt(x - row) == (a - a[2]) % 16).all()
    assert (ctx.decrypt(x == number) == (a == 5)).all()
    assert (ctx.decrypt(x + a) == 2 * a % 16).all()
    assert ctx.decrypt(number) == 5
    with pytest.raises(sd.MissingKeyError, match=r"rolls=\[2\]"):
        np.roll(x, 2)
    moves: list[Callable[[], Any]] = [
        lambda: x.T,
        lambda: x[1],
        lambda: np.roll(x, 1, axis=1),
        lambda: np.flip(x),
    ]
    for moved in moves:
        with pytest.raises(sd.UnsupportedError, match="before they are encrypted"):
            moved()
    with pytest.raises(sd.PlanError, match="power of two"):
        np.roll(ctx.encrypt(A), 1)
    with pytest.raises(sd.ShapeError):
        _ = x + ctx.encrypt(A)
    for name in ("sum", "sort", "cumsum", "any"):
        with pytest.raises(sd.UnsupportedError, match=name):
            getattr(np, name)(x)
    with pytest.raises(sd.UnsupportedError, match="decrypt"):
        x.tolist()


def doubled(x: Any, times: int) -> None:
    """A table of sums of more and more."""
    for _ in range(times):
        x = x + x
        x.lookup(range(16))


def test_what_a_context_refuses(ctx: sd.SmallContext, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "NO SECURITY" in repr(ctx)
    assert (ctx.modulus, ctx.slots) == (16, 512)
    with pytest.raises(sd.InputError, match="NaN"):
        ctx.encrypt([1.0, float("nan")])
    with pytest.raises(sd.UnsupportedError, match="nothing is rounded"):
        ctx.encrypt([0.5])
    for wrong in ([3, 16], [-1, 0]):
        with pytest.raises(sd.InputError, match="from 0 to 15"):
            ctx.encrypt(wrong)
    with pytest.raises(sd.InputError, match=r"\(0, 1\) is not from 0 to 4; say a larger largest=, up to 15"):
        ctx.encrypt([[1, 5]], largest=4)
    with pytest.raises(sd.PlanError, match="a set for larger tables"):
        ctx.encrypt([3], modulus=200)
    with pytest.raises(sd.ShapeError):
        ctx.encrypt([])
    x = ctx.encrypt(A)
    for number in (float("nan"), np.nan):
        with pytest.raises(sd.InputError, match="NaN"):
            _ = x < number
    with pytest.raises(sd.InputError, match="from 0 to 15"):
        _ = x == np.full(40, 16)
    with pytest.raises(sd.UnsupportedError, match="round"):
        np.sqrt(x)
    with pytest.raises(sd.UnsupportedError, match="already"):
        ctx.encrypt(x)
    with pytest.raises(sd.UnsupportedError, match="decrypted"):
        ctx.decrypt([1])
    with pytest.raises(sd.KeyMismatchError):
        made("S15").decrypt(x)
    with pytest.raises(sd.UnsupportedError, match="modulo"):
        _ = x + ctx.encrypt([3], modulus=8)
    with pytest.raises(sd.UnsupportedError, match="pickle"):
        pickle.dumps(ctx)
    for twice in (lambda: doubled(x, 40), lambda: ctx.explain(lambda x: doubled(x, 40), x=A)):
        with pytest.raises(sd.PrecisionError, match=r"table|addition"):
            twice()
    with pytest.raises(sd.InputError, match="rolls"):
        made("S15", rolls=[2**70])
    with pytest.raises(sd.UnsupportedError, match=r"rolls as its settings.*a table is its refresh"):
        sd.context(3, bootstrap="S15")
    with pytest.raises(sd.UnsupportedError, match="rolls"):
        sd.context(3, rolls=[1])  # type: ignore[call-overload]
    with pytest.raises(sd.InputError, match="whole numbers"):
        made("S15", rolls=[0.5])
    with pytest.raises(sd.PlanError, match="128"):
        sd.context(bootstrap="S15", security=192)
    assert made("g15").modulus == 4
    monkeypatch.setattr("sudare._memory.available", lambda: 1 << 20)
    for name in ("W16", "X15", "x16"):
        with pytest.raises(sd.OutOfMemoryError, match=name.upper()):
            sd.context(bootstrap=name)
    with pytest.raises(sd.OutOfMemoryError, match="in parts"):
        ctx.encrypt(np.zeros(10**7, np.int64))


def identical(ids: Any, wanted: Any) -> Any:
    """Which identifiers of eight digits are the wanted one: a table for each digit, and one of their sum."""
    return sum((x != y).astype("uint8") for x, y in zip(ids, wanted, strict=True)) == 0


def test_identifiers(ctx: sd.SmallContext) -> None:
    ids = RNG.integers(0, 2**32, 1000, dtype=np.uint64)
    ids[[3, 500]] = ids[77]
    ids[4] ^= np.uint64(1)
    digits = [(ids >> np.uint64(4 * k)).astype(np.int64) % 16 for k in range(8)]
    encrypted = [ctx.encrypt(d) for d in digits]
    found = identical(encrypted, [ctx.encrypt(d[77]) for d in digits])
    assert (ctx.decrypt(found) == (ids == ids[77])).all()
    named: Any = {f"digit{k}": d for k, d in enumerate(digits)}
    choice = ctx.explain(lambda **x: identical(list(x.values()), [d[77] for d in digits]), **named)
    # Nine bootstraps of each of two ciphertexts.
    assert choice.bootstraps == 18
    assert choice.tfhe_bootstraps == 9000


def life(cells: Any, width: int) -> Any:
    """A round on a board whose rows join: a cell lives with three neighbours, or with two if it did."""
    x = cells.astype("uint8")
    three = np.roll(x, 1) + x + np.roll(x, -1)
    nine = np.roll(three, width) + three + np.roll(three, -width)
    return sd.table(2 * nine - x, lambda v: 5 <= v <= 7)


def test_the_game_of_life() -> None:
    """2n + x of n neighbours is taken modulo 16: 16 and 17 are dead as 0 and 1 are."""
    width = 8
    ctx = made("W16", rolls=[1, -1, width, -width])
    plain = RNG.integers(0, 3, width * width) == 0
    cells = ctx.encrypt(plain, modulus=16)
    for _ in range(3):
        cells = life(cells, width)
        x = plain.astype(int)
        nine = sum(np.roll(x, a + width * b) for a in (-1, 0, 1) for b in (-1, 0, 1))
        plain = (nine == 3) | ((nine == 4) & plain)
    assert (ctx.decrypt(cells) == plain).all()


def test_tables_or_tfhe() -> None:
    few, many = np.zeros(200, bool), np.zeros(40_000, bool)

    def adder(a: Any, b: Any, c: Any) -> Any:
        half = a ^ b
        return half ^ c, (a & b) | (c & half)

    small, large = (sd.explain(adder, a=x, b=x, c=x) for x in (few, many))
    # Five gates, what both results have in common counted once; two ciphertexts of many values.
    assert (small.tfhe_bootstraps, small.bootstraps) == (1000, 5)
    assert (large.tfhe_bootstraps, large.bootstraps) == (200_000, 10)
    assert not small.by_tables
    assert large.by_tables
    assert "take tables" in str(large)
    assert small.bootstrap == large.bootstrap == "G15"
    assert small.pays_from == large.pays_from
    assert 200 < (small.pays_from or 0) < 300
    # What integers are decides the set, and what has no room is refused as it would be there.
    digits = np.zeros(10, np.uint8)
    assert sd.explain(lambda x: x < 3, x=digits, modulus=10).bootstrap == "S15"
    assert sd.explain(lambda x: x < 3, x=digits, modulus=200).bootstrap == "W16"
    with pytest.raises(sd.PlanError, match="larger tables"):
        sd.explain(lambda x: x < 3, x=digits, modulus=300)
    with pytest.raises(sd.PlanError, match="return"):
        sd.explain(lambda x: 3, x=digits, modulus=16)
    with pytest.raises(sd.InputError, match="modulus=16"):
        sd.explain(lambda x: x == 9, x=digits)
    assert sd.explain(lambda x: x == 9, x=digits, modulus=16).bootstraps == 1
    # Booleans beside integers modulo 10 have their own modulus; what is counted has what is said.
    mixed = sd.explain(lambda a, b, x: (a & b, x < 3), a=few, b=few, x=digits, modulus=10)
    assert mixed.bootstraps == 2
    board = np.zeros(64, bool)
    assert sd.explain(lambda cells: life(cells, 8), cells=board, modulus=16).bootstraps == 1
    nothing = sd.explain(lambda x: x + 3, x=digits, modulus=16)
    assert nothing.pays_from is None
    assert "no bootstrap" in str(nothing)
    ctx = made("S15")
    with pytest.raises(sd.MissingKeyError, match=r"rolls=\[1\]"):
        ctx.explain(lambda x: np.roll(x, 1), x=np.zeros(8, bool))
    assert "take TFHE" in str(ctx.explain(lambda x: x // 3, x=digits))
    with pytest.raises(sd.PlanError, match="larger tables"):
        ctx.explain(lambda x: x // 3, modulus=20, x=digits)
