"""Operations on encrypted integers made of others: quotients, powers, sorting, sums, tables of 16 bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ._errors import InputError, ShapeError, UnsupportedError
from ._progress import steps

if TYPE_CHECKING:
    from ._bits_array import EncryptedBits

__all__ = ["argbest", "divmod_", "matmul", "mean", "ordered", "power", "scan", "wide_lookup"]


def _where(condition: Any, x: Any, y: Any) -> EncryptedBits:
    from ._bits_array import where

    return where(condition, x, y)


def _joined(arrays: list[EncryptedBits], axis: int = 0) -> EncryptedBits:
    from ._bits_array import concatenate

    return concatenate(arrays, axis)


def divmod_(x: EncryptedBits, d: EncryptedBits | NDArray[Any]) -> tuple[EncryptedBits, EncryptedBits]:
    """Quotients rounded down and remainders with the divisor's sign, as NumPy has them.

    With an encrypted zero both are 0. `d` is of x's type and shape. School division: a comparison, a choice
    and a difference for each bit of the quotient.
    """
    if isinstance(d, np.ndarray):
        if not d.all():
            raise ZeroDivisionError("division of encrypted integers by a public zero")
        logs = np.log2(np.abs(d.astype(np.float64))).astype(int)
        if ((d > 0) & (d == np.left_shift(np.ones_like(d), logs.astype(d.dtype)))).all():
            return x >> logs.astype(d.dtype), x & (d - 1).astype(d.dtype)
    if x.dtype.kind != "i":
        return _unsigned(x, d)
    unsigned = np.dtype(x.dtype.str.replace("i", "u"))
    low, minus = x < 0, d < 0
    size: Any = _where(minus, -d, d).astype(unsigned) if not isinstance(d, np.ndarray) else None
    if isinstance(d, np.ndarray):
        size = np.where(minus, -d, d).astype(unsigned)
    quotient, rest = _unsigned(_where(low, -x, x).astype(unsigned), size)
    quotient, rest = quotient.astype(x.dtype), rest.astype(x.dtype)
    # Of different signs: down, and the rest is what is missing.
    differ, some = low ^ minus, rest != 0
    down = differ & some
    # A divisor of zero has the quotient 0 and the rest 0: it stays.
    rest = _where(down, size.astype(x.dtype) - rest, rest)
    quotient = _where(differ, -quotient, quotient) - down.astype(x.dtype)
    return quotient, _where(minus, -rest, rest)


def _unsigned(x: EncryptedBits, d: EncryptedBits | NDArray[Any]) -> tuple[EncryptedBits, EncryptedBits]:
    bits, rest = 8 * x.dtype.itemsize, x
    quotient: Any = None
    public = isinstance(d, np.ndarray)
    longest = bits - int(np.asarray(d).min()).bit_length() if public else bits - 1
    for step in steps("dividing", longest + 1):
        by = longest - step
        # Where the divisor does not fit so far up, the digit is zero.
        fits = (d >> np.uint8(bits - by)) == 0 if by else None
        moved = d << by if not public else np.left_shift(d, np.array(by, d.dtype))
        digit = rest >= moved
        if fits is not None:
            digit = digit & fits
        rest = rest - _where(digit, moved, np.array(0, x.dtype))
        term = digit.astype(x.dtype) << by
        quotient = term if quotient is None else quotient + term
    if not public:
        real = d != 0
        quotient, rest = (_where(real, y, np.array(0, x.dtype)) for y in (quotient, rest))
    return quotient, rest


def power(x: EncryptedBits, exponent: Any) -> EncryptedBits:
    """The product of x with itself: squares and products, as the exponent's bits say."""
    from ._bits_array import EncryptedBits

    if isinstance(exponent, EncryptedBits):
        raise UnsupportedError(
            "an exponent is public; where the base is, look the power up: "
            "exponent.lookup(base ** np.arange(256))"
        )
    if isinstance(exponent, (bool, np.bool_)) or not isinstance(exponent, (int, np.integer)):
        raise UnsupportedError("encrypted integers are raised to one whole number; loop over several")
    if exponent < 0:
        raise InputError("integers to negative powers are none; NumPy refuses them too")
    if x.dtype == np.bool_:
        raise UnsupportedError("booleans have no powers; convert them: x.astype('uint8')")
    rest, square = int(exponent), x
    out: EncryptedBits | None = None
    while rest:
        if rest & 1:
            out = square if out is None else out * square
        rest >>= 1
        square = square * square if rest else square
    return x._lift(np.ones(x.shape, x.dtype)) if out is None else out


def _first(x: EncryptedBits, axis: int) -> EncryptedBits:
    """With the axis first."""
    if not -x.ndim <= axis < x.ndim:
        raise ShapeError(f"shape {x.shape} has no axis {axis}")
    return x._take(np.moveaxis(x._indices, axis, 0))


def _back(x: EncryptedBits, axis: int) -> EncryptedBits:
    return x._take(np.moveaxis(x._indices, 0, axis))


def _network(n: int) -> list[list[tuple[int, int]]]:
    """Batcher's sorting by odd-even merges: rounds of pairs that do not touch."""
    rounds: list[list[tuple[int, int]]] = []
    p = 1
    while p < n:
        k = p
        while k >= 1:
            pairs = [
                (i + j, i + j + k)
                for j in range(k % p, n - k, 2 * k)
                for i in range(min(k, n - j - k))
                if (i + j) // (2 * p) == (i + j + k) // (2 * p)
            ]
            rounds.append(pairs)
            k //= 2
        p *= 2
    return rounds


def ordered(x: EncryptedBits, axis: int | None) -> EncryptedBits:
    """Sorted along an axis, by a network that takes the same steps for any elements."""
    if axis is None:
        x, axis = x.reshape(-1), 0
    rows = _first(x, axis)
    rounds = _network(len(rows))
    for number in steps("sorting", len(rounds)):
        pairs = rounds[number]
        low, high = (np.array([pair[i] for pair in pairs]) for i in (0, 1))
        a, b = rows[low], rows[high]
        swap = a > b
        both = _joined([rows, _where(swap, b, a), _where(swap, a, b)])
        order = np.arange(len(rows))
        order[low], order[high] = len(rows) + np.arange(len(low)), len(rows) + len(low) + np.arange(len(low))
        rows = both[order]
    return _back(rows, axis)


def argbest(x: EncryptedBits, axis: int | None, keepdims: bool, better: str) -> EncryptedBits:
    """The number of the first element that is the least or the largest: a tournament of neighbours."""
    rows, shape = x._along(axis, keepdims)
    count = len(rows)
    small = np.min_scalar_type(max(count - 1, 1))
    column = (count, *[1] * (rows.ndim - 1))
    numbers: Any = np.broadcast_to(np.arange(count, dtype=small).reshape(column), rows.shape)
    numbers = x._lift(np.ascontiguousarray(numbers))
    while len(rows) > 1:
        pairs = len(rows) // 2
        a, b = rows[0 : 2 * pairs : 2], rows[1 : 2 * pairs : 2]
        i, j = numbers[0 : 2 * pairs : 2], numbers[1 : 2 * pairs : 2]
        # Of equals the first stays.
        stays = a._binary(better, b)
        best, at = _where(stays, a, b), _where(stays, i, j)
        rows, numbers = _joined([best, rows[2 * pairs :]]), _joined([at, numbers[2 * pairs :]])
    return numbers.reshape(shape).astype(np.intp)  # type: ignore[no-any-return]


def scan(x: EncryptedBits, axis: int | None, step: Callable[[Any, Any], Any]) -> EncryptedBits:
    """Sums (or products) of the first elements, of the first two, …: at most two steps an element."""
    if axis is None:
        x, axis = x.reshape(-1), 0
    return _back(_scan(_first(x, axis), step), axis)


def _scan(x: EncryptedBits, step: Callable[[Any, Any], Any]) -> EncryptedBits:
    n = len(x)
    if n < 2:
        return x
    half = n // 2
    odd = _scan(step(x[0 : 2 * half : 2], x[1 : 2 * half : 2]), step)
    even = x[0:1]
    if n > 2:
        even = _joined([even, step(odd[: (n - 1) // 2], x[2::2])])
    order = np.empty(n, np.intp)
    order[1::2], order[0::2] = np.arange(half), half + np.arange(n - half)
    return _joined([odd, even])[order]


def mean(x: EncryptedBits, axis: Any, dtype: DTypeLike | None, keepdims: bool) -> EncryptedBits:
    """The mean, cut to a whole number as NumPy does with an integer dtype."""
    if dtype is None or np.dtype(dtype).kind not in "iu":
        raise UnsupportedError(
            "a mean of integers is no integer: decrypt x.sum() and divide by x.size, "
            "or take the whole part by x.mean(dtype='int64')"
        )
    total = x.sum(axis, keepdims=keepdims, dtype=dtype)
    count = x.size // max(math.prod(total.shape), 1)
    wide = np.full(total.shape, count, np.uint64 if total.dtype.kind == "u" else np.int64)
    if total.dtype.kind == "u":
        return total // wide.astype(total.dtype)
    # Towards zero.
    size = np.dtype(total.dtype.str.replace("i", "u"))
    low = total < 0
    whole = (_where(low, -total, total).astype(size) // wide.astype(size)).astype(total.dtype)
    return _where(low, -whole, whole)


def matmul(left: Any, right: Any) -> EncryptedBits:
    """The matrix product in the elements' own type, wrapping; of booleans whether any pair is true."""
    from ._bits_array import EncryptedBits

    def array(x: Any) -> Any:
        return x if isinstance(x, EncryptedBits) else np.asarray(x)

    x, y = array(left), array(right)
    if 0 in (x.ndim, y.ndim):
        raise ShapeError("a matrix product takes vectors and matrices; multiply by a number with *")
    row, column = x.ndim == 1, y.ndim == 1
    x = x.reshape((1, *x.shape)) if row else x
    y = y.reshape((*y.shape, 1)) if column else y
    if x.shape[-1] != y.shape[-2]:
        raise ShapeError(f"matrix product: shapes {left.shape} and {right.shape} do not go together")
    if not x.shape[-1]:
        raise ShapeError("a matrix product without terms; its result is public: numpy.zeros")
    out: Any = None
    for i in steps("multiplying", x.shape[-1]):
        term = x[..., :, i : i + 1] * y[..., i : i + 1, :]
        out = term if out is None else out + term
    if row:
        out = out[..., 0, :]
    return out[..., 0] if column else out  # type: ignore[no-any-return]


def wide_lookup(x: EncryptedBits, table: NDArray[Any]) -> EncryptedBits:
    """`table[x]` for an index of 16 bits, whose upper byte chooses a row of 256 entries.

    Rows that are alike are looked up once, and rows of one entry not at all.
    """
    rows = table.reshape(256, 256)
    unique, which = np.unique(rows, axis=0, return_inverse=True)
    bits = x.astype(np.uint16)
    low, high = bits.astype(np.uint8), (bits >> 8).astype(np.uint8)
    if len(unique) == 1:
        return low.lookup(unique[0])
    out: Any = None
    zero = np.zeros((), table.dtype)
    for i in steps("lookup", len(unique)):
        if not unique[i].any():
            continue
        here = high.lookup(which.reshape(-1) == i)
        same = (unique[i] == unique[i, 0]).all()
        found = unique[i, 0] if same else low.lookup(unique[i])
        term = here & found if table.dtype == np.bool_ else _where(here, found, zero)
        out = term if out is None else (out | term if table.dtype == np.bool_ else out + term)
    return out  # type: ignore[no-any-return]
