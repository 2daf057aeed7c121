"""Arrays of encrypted bits and small integers, whose functions are tables of their values."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from . import _core
from . import _numpy as shared
from ._errors import InputError, MissingKeyError, PlanError, ShapeError, UnsupportedError
from ._opaque import Opaque
from ._remedies import AFTER
from ._values import array, count

__all__ = ["EncryptedSmall"]

Shape: TypeAlias = tuple[int, ...]
#: Values of a table, the modulus of its results, whether these are booleans.
Table: TypeAlias = tuple[list[int], int, bool]

#: What bits are known modulo, so that two of them have a sum.
BITS = 4


def small(values: Any) -> NDArray[Any]:
    """A plain array of booleans or integers.

    Raises `InputError` for NaN, `UnsupportedError` for what holds no integers, `ShapeError` for no elements.
    """
    found = array(values)
    if not found.size:
        raise ShapeError(f"an array with elements is needed, not one of shape {found.shape}")
    if found.dtype.kind == "f":
        wrong = np.argwhere(np.isnan(found))
        if len(wrong):
            raise InputError(
                f"the element at {tuple(wrong[0].tolist())} is NaN, and booleans or integers are needed; "
                "fill it first"
            )
    if found.dtype.kind not in "biu":
        raise UnsupportedError(
            f"booleans and small integers are needed, not an array of {found.dtype}, for nothing is "
            "rounded: convert with .astype, or use sudare.context(depth=…) for real numbers"
        )
    return found


def modulus_of(value: Any) -> int:
    """A modulus, at least 2."""
    found = count(value, "modulus")
    if found < 2:
        raise InputError(f"modulus is a whole number from 2 on, not {found}")
    return found


def words(values: NDArray[Any]) -> NDArray[np.uint64]:
    """Elements in C order, none of them negative."""
    return np.ascontiguousarray(values).reshape(-1).astype(np.uint64)


class EncryptedSmall(shared.Indexed):
    """Encrypted booleans, or integers modulo a small number, that nobody can read without the context's key.

    `+ -` and multiples are modulo `modulus` and cost next to nothing. Any other function of one array and
    plain numbers is a table of its values; gates of booleans, comparisons, `minimum`, `maximum` and
    products of two arrays are one or two tables of a sum or a difference. A table is one bootstrap of each
    ciphertext, and exact.

    >>> ctx = sd.context(bootstrap="S15", security="insecure")  # no security: quick to try
    >>> x = ctx.encrypt([3, 5, 15])
    >>> ctx.decrypt(x**2 + 1).tolist(), x.modulus
    ([10, 10, 2], 16)
    >>> ctx.decrypt((x == 5) | (x > 10))
    array([False,  True,  True])
    """

    _index = "an encrypted index picks from a public table: sudare.table(index, values)"

    def __init__(self, core: _core.SmallArray, shape: Shape, server: _core.SmallServer) -> None:
        self._core, self._shape, self._server = core, shape, server

    # What everybody may see.

    @property
    def shape(self) -> Shape:
        """The shape that decryption gives."""
        return self._shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """What decryption gives: bool or uint8."""
        return np.dtype(np.bool_ if self._core.bits else np.uint8)

    @property
    def modulus(self) -> int:
        """What its integers are known modulo."""
        return self._core.modulus

    @property
    def key_id(self) -> str | None:
        """The public name of the key that it is under; none of a forecast."""
        return self._core.key_id

    def __repr__(self) -> str:
        kind = "booleans" if self._core.bits else "integers"
        key = "foreseen" if self.key_id is None else f"key {self.key_id[:8]}"
        return f"<sudare encrypted {kind} modulo {self.modulus}, {self.shape}, {key}>"

    def copy(self) -> EncryptedSmall:
        """The same array: it never changes."""
        return self

    # Shapes.

    def _made(self, core: _core.SmallArray, shape: Shape | None = None) -> EncryptedSmall:
        return EncryptedSmall(core, self._shape if shape is None else shape, self._server)

    @staticmethod
    def _refusal(name: str) -> UnsupportedError:
        return unsupported(name)

    def _take(self, indices: NDArray[Any]) -> EncryptedSmall:
        order, places = indices.reshape(-1), np.arange(self.size)
        if order.size == 0:
            raise ShapeError("an encrypted array needs at least one element")
        by = int(-order[0]) % self.size
        if order.size == self.size and (order == np.roll(places, by)).all():
            return self._made(self._rolled(by) if by else self._core, indices.shape)
        if order.size % self.size == 0 and (order == np.tile(places, order.size // self.size)).all():
            return self._made(self._server.repeated(self._core, order.size), indices.shape)
        raise UnsupportedError(
            "encrypted small integers stay at their places, but for shifts of a whole array in a circle "
            "(numpy.roll) and repetition of it; move them before they are encrypted, or take sudare.bits"
        )

    def _rolled(self, by: int) -> _core.SmallArray:
        try:
            return self._server.roll(self._core, by)
        except MissingKeyError:
            raise MissingKeyError(
                f"this context has no key that shifts {self.size} elements by {by}; make it with one: "
                f"sudare.context(bootstrap=…, rolls=[{by}])"
            ) from None

    # Functions.

    def lookup(self, table: Any, modulus: int | None = None) -> Any:
        """`table[x]` or `table(x)`: any function of the values, by one bootstrap.

        `table` is a function of one number (of a bool, where these are booleans), or its values from 0 to
        `modulus` - 1. Its values are booleans, or integers from 0 on below `modulus`, which the results
        have (x's without one). A tuple or list of functions gives a tuple of results, which together cost
        little more than one.

        Raises `ShapeError` for another number of values, `InputError` for one that is no integer or out of
        range, `PlanError` for a modulus that the set has no room for, `PrecisionError` where errors of x, a
        sum of too many others, leave no room for the table.

        >>> ctx = sd.context(bootstrap="S15", security="insecure")  # no security: quick to try
        >>> x = ctx.encrypt([3, 5, 15])
        >>> low, odd = x.lookup((lambda v: v % 4, lambda v: v % 2 == 1))
        >>> ctx.decrypt(low).tolist(), ctx.decrypt(odd).tolist()
        ([3, 1, 3], [True, True, True])
        """
        if isinstance(table, Opaque):
            raise UnsupportedError(
                "a table is plain, and this one is encrypted; compare and add encrypted values instead"
            )
        several = isinstance(table, (tuple, list)) and len(table) > 0 and all(map(callable, table))
        all_tables = [self._entries(f, modulus) for f in (table if several else (table,))]
        found = tuple(self._made(core) for core in self._server.tables(self._core, all_tables))
        return found if several else found[0]

    def _entries(self, table: Any, modulus: int | None) -> Table:
        values = self._domain.tolist()
        if callable(table):
            found = [table(value) for value in values]
        else:
            entries = array(table)
            if entries.shape != (len(values),):
                raise ShapeError(
                    f"a table of {len(values)} values is needed, one for each value of x, not one of shape "
                    f"{entries.shape}"
                )
            found = entries.tolist()
        wrong = [k for k, v in enumerate(found) if not _whole(v)]
        if wrong:
            raise InputError(
                f"the table's value {wrong[0]} is not an integer, and nothing is rounded: write int(…) or "
                "round(…) of it"
            )
        bits = all(isinstance(v, (bool, np.bool_)) for v in found)
        return self._table(np.asarray([int(v) for v in found], dtype=bool if bits else object), modulus)

    def _table(self, values: NDArray[Any], modulus: int | None = None) -> Table:
        """A table for each value of the domain, as the extension takes it."""
        bits = values.dtype.kind == "b"
        if modulus is None:
            modulus = BITS if bits and self.modulus % BITS else self.modulus
        else:
            modulus = modulus_of(modulus)
        wrong = np.argwhere((values < 0) | (values >= modulus))
        if len(wrong):
            raise InputError(
                f"the table's value {int(wrong[0][0])} is not from 0 to {modulus - 1}; reduce it "
                f"% {modulus}, or say another modulus=, up to the set's"
            )
        entries = [int(v) for v in values]
        if self._core.bits:
            # Others do not occur: with these the table is a step, which leaves the least of an error.
            entries = [entries[0 < v <= self.modulus // 2] for v in range(self.modulus)]
        return entries, modulus, bits

    @property
    def _domain(self) -> NDArray[Any]:
        """The values that an element can have."""
        return np.array([False, True]) if self._core.bits else np.arange(self.modulus)

    def _of_one(self, values: NDArray[Any], name: str) -> EncryptedSmall | Table:
        """A function by its values: computed at once where it takes no bootstrap, else its table."""
        if values.dtype.kind not in "biu":
            if values.dtype.kind != "f" or not (np.isfinite(values) & (values == np.trunc(values))).all():
                raise UnsupportedError(
                    f"numpy.{name} gives no integers here; write sudare.table(x, lambda v: round(…))"
                )
            if (np.abs(values) >= EXACT_BELOW).any():
                raise UnsupportedError(
                    f"numpy.{name} gives numbers that are not exact, from 2^53 on; write "
                    "sudare.table(x, f) with Python's integers"
                )
        if values.dtype.kind == "b":
            if not self._core.bits:
                return self._table(values)
            # A gate that does not look at its second bit.
            gate = 0b0011 * int(values[0]) + 0b1100 * int(values[1])
            return self._made(self._server.gate(gate, self._core, self._core))
        values = _reduced(values, self.modulus)
        first, step = int(values[0]), int(values[1]) - int(values[0])
        if ((values - (first + step * np.arange(values.size))) % self.modulus == 0).all():
            return self._made(self._server.affine(self._core, step % self.modulus, first))
        return self._table(values)

    def astype(self, dtype: DTypeLike) -> EncryptedSmall:
        """Booleans as integers, for nothing, or whether integers are not zero, by a table.

        Raises `UnsupportedError` for another type than bool and uint8.
        """
        wanted = np.dtype(dtype)
        if wanted == self.dtype:
            return self
        if wanted == np.bool_:
            return self != 0  # type: ignore[no-any-return]
        if wanted != np.uint8:
            raise UnsupportedError(
                f"what is encrypted here is bool or uint8, not {wanted}; convert what decrypt gives"
            )
        return self._made(self._core.integers())

    # Two arrays.

    def _lift(self, x: Any, shape: Shape, ufunc: np.ufunc) -> EncryptedSmall:
        """An operand in a shape; it may be plain."""
        if isinstance(x, EncryptedSmall):
            return x._to(shape)
        values = x
        bits = values.dtype.kind == "b"
        wrong = np.argwhere((values < 0) | (values >= self.modulus))
        if len(wrong) and ufunc not in (np.add, np.subtract, np.multiply):
            raise InputError(
                f"the plain element at {tuple(wrong[0].tolist())} is not from 0 to {self.modulus - 1}, as "
                f"the encrypted ones are; reduce it % {self.modulus}, or clip it"
            )
        # Everybody's values are repeated before they are laid out, whatever their shape.
        values = np.broadcast_to(values if bits else _reduced(values, self.modulus), shape)
        return self._made(self._server.public(words(values), self.modulus, bits, self._core), shape)

    @property
    def _numbers(self) -> NDArray[Any]:
        """The numbers that its elements can be, those that it may have passed reduced."""
        low, high = self._core.range
        return np.arange(low, high + 1) if low >= 0 and high < self.modulus else np.arange(self.modulus)

    def _both(self, ufunc: np.ufunc, other: EncryptedSmall) -> EncryptedSmall:
        """A function of two arrays of one shape."""
        x, y = self, other
        if x.modulus != y.modulus:
            raise UnsupportedError(
                f"integers modulo {x.modulus} and {y.modulus} do not go together; bring one to the "
                f"other's by a table: sudare.table(x, lambda v: v, modulus={y.modulus})"
            )
        name, server = ufunc.__name__, self._server
        if x._core.bits and y._core.bits:
            bits = np.array([False, False, True, True]), np.array([False, True, False, True])
            found = _tried(name, ufunc, *bits)
            if isinstance(found, tuple) or found.dtype != np.bool_:
                raise unsupported(name)
            gate = sum(int(g) << k for k, g in enumerate(found))
            return x._made(server.gate(gate, x._core, y._core))
        if ufunc in (np.add, np.subtract):
            return x._made((server.add if ufunc is np.add else server.sub)(x._core, y._core))
        i, j = x._numbers[:, None], y._numbers[None, :]
        if ufunc is np.multiply:
            # The difference of two quarters of squares, which are rounded alike.
            total, apart = (
                x._joined(y, np.add, (i + j) ** 2 // 4),
                x._joined(y, np.subtract, (i - j) ** 2 // 4),
            )
            return total - apart  # type: ignore[no-any-return]
        found = _tried(name, lambda i, j: _exact(ufunc, (i, j), x.modulus), i, j)
        if isinstance(found, tuple) or found.dtype.kind not in "biu":
            raise unsupported(name)
        # Whether x is less than y is a function of x - y, and what the larger one is over y.
        for join in (np.subtract, np.add):
            if _depends(found, join(i, j)):
                return x._joined(y, join, found)
        if found.dtype.kind != "b" and _depends(found - j, i - j):
            return x._joined(y, np.subtract, found - j) + y  # type: ignore[no-any-return]
        raise unsupported(name)

    def _joined(self, other: EncryptedSmall, join: np.ufunc, values: NDArray[Any]) -> EncryptedSmall:
        """A function of the sum or difference of two arrays, by what it is for all pairs of numbers."""
        t = self.modulus
        i, j = self._numbers[:, None], other._numbers[None, :]
        at = join(i, j)
        table = np.zeros(t, values.dtype)
        known = np.zeros(t, bool)
        table[at % t], known[at % t] = values, True
        if (table[at % t] != values).any():
            highest = int(i.max()), int(j.max())
            raise PlanError(
                f"this takes a table of {int(np.ptp(at)) + 1} values, and integers modulo {t} have {t}: "
                f"numbers are up to {highest[0]} and {highest[1]}; encrypt smaller ones, "
                f"largest={(t - 1) // 2}, or take a larger modulus"
            )
        # What does not occur is as what comes before it, so that the table has few steps.
        last = np.maximum.accumulate(np.where(known, np.arange(t), -1))
        table = table[np.where(last < 0, last.max(), last)]
        z = self._made((self._server.add if join is np.add else self._server.sub)(self._core, other._core))
        return z._made(
            self._server.tables(z._core, [z._table(table if table.dtype == bool else _reduced(table, t))])[0]
        )

    # NumPy's protocols.

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Functions of NumPy of each element, of which one operand at least is encrypted."""
        name = ufunc.__name__
        if method == "outer" and not kwargs:
            return shared.outer(ufunc, *inputs)
        if ufunc.signature is not None:
            # A product of matrices, say, is no function of each element.
            raise unsupported(name)
        if name in shared.UFUNCS and method == "__call__" and not kwargs:
            return shared.UFUNCS[name](*inputs)
        if method != "__call__" or kwargs:
            raise unsupported(name if method == "__call__" else f"{name}.{method}")
        if any(isinstance(x, Opaque) and not isinstance(x, EncryptedSmall) for x in inputs):
            return NotImplemented
        ours = {id(x): x for x in inputs if isinstance(x, EncryptedSmall)}
        (first, *others) = ours.values()
        plain = [x if isinstance(x, EncryptedSmall) else _number(x) for x in inputs]
        if not others and all(x is not None for x in plain):
            return first._mapped(
                name,
                lambda v: _exact(
                    ufunc, [v if isinstance(x, EncryptedSmall) else x for x in plain], first.modulus
                ),
            )
        if ufunc.nin != 2:
            raise unsupported(name)
        operands = [x if isinstance(x, EncryptedSmall) else small(x) for x in inputs]
        shapes = [x.shape for x in operands]
        try:
            shape = np.broadcast_shapes(*shapes)
        except ValueError:
            raise ShapeError(f"shapes {shapes[0]} and {shapes[1]} do not go together") from None
        left, right = (first._lift(x, shape, ufunc) for x in operands)
        return left._both(ufunc, right)

    def _mapped(self, name: str, function: Callable[[Any], Any]) -> Any:
        """A function of NumPy of this array and of numbers."""
        found = _tried(name, function, self._domain)
        made = [
            self._of_one(np.asarray(part), name) for part in (found if isinstance(found, tuple) else (found,))
        ]
        tables = [part for part in made if not isinstance(part, EncryptedSmall)]
        cores = iter(self._server.tables(self._core, tables) if tables else [])
        done = tuple(part if isinstance(part, EncryptedSmall) else self._made(next(cores)) for part in made)
        return done if isinstance(found, tuple) else done[0]

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Functions of NumPy of which one argument is encrypted."""
        return shared.called(FUNCTIONS, func, args, kwargs, lambda name, operands: unsupported(name))


def unsupported(name: str) -> UnsupportedError:
    """The refusal of a function by its name, with what to write."""
    return UnsupportedError(
        f"numpy.{name} does not work on encrypted small integers; write sudare.table(x, f) for a "
        f"function of each element, take sudare.bits, which moves and joins elements, or "
        + AFTER.format(name=name)
    )


def _number(x: Any) -> Any:
    """A plain number, which is not NaN, an integer as Python's; none for anything else."""
    value = x[()] if isinstance(x, np.ndarray) and x.ndim == 0 else x
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, numbers.Integral):
        return int(value)
    if not isinstance(value, numbers.Real):
        return None
    if isinstance(value, (float, np.floating)) and np.isnan(value):
        raise InputError("NaN is not computed with; give booleans or integers")
    return value


def _whole(value: Any) -> bool:
    if isinstance(value, (bool, np.bool_)):
        return True
    if not isinstance(value, numbers.Real):
        return False
    if isinstance(value, (float, np.floating)) and not np.isfinite(value):
        return False
    return bool(value == math.trunc(value))


def _reduced(values: NDArray[Any], modulus: int) -> NDArray[np.int64]:
    """Integers of any type modulo a number, which that type need not hold."""
    wide = np.uint64 if values.dtype == np.uint64 else np.int64
    return (values.astype(wide) % wide(modulus)).astype(np.int64)


def _power(base: int, exponent: int, modulus: int) -> int:
    if exponent < 0:
        raise ValueError("an integer to a negative power is not an integer")
    return pow(base, exponent, modulus)


#: Functions of integers whose values can pass 2^63, where NumPy's are wrong modulo another number.
EXACT: dict[np.ufunc, Callable[[int, int, int], int]] = {
    np.add: lambda a, b, t: a + b,
    np.subtract: lambda a, b, t: a - b,
    np.multiply: lambda a, b, t: a * b,
    np.lcm: lambda a, b, t: math.lcm(a, b),
    np.power: _power,
    np.left_shift: lambda a, b, t: a * _power(2, b, t),
}
#: Integers up to here are floats, and others are rounded to them.
EXACT_BELOW = 2.0**53


def _exact(ufunc: np.ufunc, operands: Sequence[Any], modulus: int) -> Any:
    """A function of NumPy of plain values: of integers modulo a number, however large they get."""
    integers = all(isinstance(x, (int, np.ndarray)) for x in operands)
    if ufunc not in EXACT or not integers or all(np.asarray(x).dtype == np.bool_ for x in operands):
        return ufunc(*operands)
    function = EXACT[ufunc]
    each = np.frompyfunc(lambda a, b: function(int(a), int(b), modulus) % modulus, 2, 1)
    return each(*operands).astype(np.int64)


def _tried(name: str, function: Callable[..., Any], *values: NDArray[Any]) -> Any:
    """What a function of NumPy makes of plain values; what it refuses is refused by its name."""
    try:
        with np.errstate(all="ignore"):
            return function(*values)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise unsupported(name) from error


def _depends(values: NDArray[Any], at: NDArray[Any]) -> bool:
    """Whether values are a function of the numbers at their places."""
    places = at - at.min()
    table = np.zeros(int(places.max()) + 1, values.dtype)
    table[places] = values
    return bool((table[places] == values).all())


def _isin(
    element: Any, test_elements: Any, assume_unique: bool = False, *, invert: bool = False
) -> EncryptedSmall:
    if isinstance(test_elements, Opaque):
        raise unsupported("isin")
    listed = array(test_elements).reshape(-1).tolist()

    def found(v: NDArray[Any]) -> NDArray[Any]:
        among = set(listed)
        return np.array([(k in among) != invert for k in v.tolist()])

    return element._mapped("isin", found)  # type: ignore[no-any-return]


def _clip(
    a: Any,
    a_min: Any = None,
    a_max: Any = None,
    *,
    min: Any = None,  # noqa: A002 (NumPy's name)
    max: Any = None,  # noqa: A002 (NumPy's name)
) -> EncryptedSmall:
    ends = [a_min if min is None else min, a_max if max is None else max]
    if not isinstance(a, EncryptedSmall) or any(x is not None and _number(x) is None for x in ends):
        raise unsupported("clip")
    return a._mapped("clip", lambda v: np.clip(v, *ends))  # type: ignore[no-any-return]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **shared.FUNCTIONS,
    "broadcast_to": lambda array, shape: array._to(tuple(np.atleast_1d(shape).tolist())),
    "isin": _isin,
    "clip": _clip,
    **dict.fromkeys(
        ("round", "around"), lambda a, decimals=0: a._mapped("round", lambda v: np.round(v, decimals))
    ),
}
