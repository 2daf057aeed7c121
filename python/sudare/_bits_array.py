"""Arrays of encrypted integers and booleans, computed with as NumPy computes with plain ones."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from . import _core, _html
from . import _numpy as shared
from ._errors import InputError, ShapeError, UnsupportedError
from ._files import Source, Travels, octets
from ._keys import Home
from ._memory import require
from ._namespace import Namespace, checked
from ._progress import forecasting
from ._remedies import unsupported_integers
from ._values import array

__all__ = ["EncryptedBits", "maximum", "minimum", "where"]

Shape: TypeAlias = tuple[int, ...]
Axis: TypeAlias = "int | tuple[int, ...] | None"
Words: TypeAlias = NDArray[np.uint64]

BOOL = np.dtype(np.bool_)
#: Bytes that encryption takes for a block at its peak.
BLOCK = 48


def blocks(element: str) -> int:
    """Blocks of an element: two bits each, or one boolean."""
    return 1 if element == "bool" else int(element.removeprefix("u").removeprefix("int")) // 2


@lru_cache(maxsize=8)
def _parameters(data: bytes) -> _core.BitsParams:
    return _core.BitsParams.from_bytes(data)


def parameters(data: Source) -> _core.BitsParams:
    """A set of parameters from its bytes, built once."""
    return _parameters(octets(data))


def words(values: NDArray[Any]) -> Words:
    """Elements in C order, as two's complement."""
    flat = np.ascontiguousarray(values).reshape(-1)
    return flat.astype(np.int64 if values.dtype.kind == "i" else np.uint64).view(np.uint64)


def _check_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.kind not in "biu":
        remedy = "convert with .astype, or use sudare.context for real numbers"
        if dtype.kind in "UST":
            remedy = "write encrypt_text(x, length=8) for texts of up to 8 bytes"
        raise UnsupportedError(f"booleans and integers of 8 to 64 bits are encrypted, not {dtype}; {remedy}")
    return dtype


def plain(x: Any) -> NDArray[Any]:
    """A plain array of booleans or integers."""
    values = array(x)
    if values.size == 0 and values.dtype.kind == "f":
        values = values.astype(np.int64)
    _check_dtype(values.dtype)
    return values


class EncryptedBits(shared.Indexed, Travels):
    """An array that nobody can read without the client's key.

    Computed with by NumPy's operators and functions; results wrap as NumPy's do. Types are promoted
    as in NumPy. Comparisons give encrypted booleans. Sums and differences leave their carries to the
    first operation that needs them, which propagates them once for all that follow (see `settle`).

    >>> ctx = sd.bits(parameters="insecure_test")  # no security: quick to try
    >>> x = ctx.encrypt(np.uint8([3, 200]))
    >>> ctx.decrypt(x * 2 - 1), x.dtype, x.shape
    (array([  5, 143], dtype=uint8), dtype('uint8'), (2,))
    """

    _index = "an encrypted index picks from a public table: index.lookup(table)"

    def __init__(
        self, core: _core.BitsArray, params: _core.BitsParams, home: Home[_core.BitsServer] | None
    ) -> None:
        self._core, self._params = core, params
        self._home: Home[_core.BitsServer] = home or Home()

    # What everybody may see.

    @property
    def shape(self) -> Shape:
        """The shape that decryption gives."""
        return tuple(self._core.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """What decryption gives."""
        return np.dtype(self._core.element)

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self._core.nbytes

    @property
    def key_id(self) -> str:
        """The public name of the key that it is under."""
        return self._core.key_id

    def to_bytes(self) -> bytes:
        """Its bytes on the wire; an array straight from encryption is a seed and one word a block."""
        return self._core.to_bytes(self._params)

    def _saved(self) -> bytes:
        return self._params.to_bytes() + self.to_bytes()

    def _repr_html_(self) -> str:
        return _html.bits(self)

    def __repr__(self) -> str:
        return (
            f"<sudare encrypted {self.dtype} {self.shape}, {self.nbytes / 1e6:.2f} MB, key {self.key_id[:8]}>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """For your own processes. From others, read bytes: unpickling runs what it reads."""
        return _unpickle, (self._params.to_bytes(), self.to_bytes())

    # Shapes.

    def _at(self, *others: EncryptedBits) -> Home[_core.BitsServer]:
        """Where something is computed, if anywhere."""
        return next((x._home for x in (self, *others) if x._home.server is not None), self._home)

    def _do(self, *others: EncryptedBits) -> _core.BitsServer:
        """What computes."""
        server = self._at(*others).server
        if server is None:
            raise UnsupportedError(
                "these arrays have no server to compute with; make their client's by client.server(), "
                "or bind one: server.bind(x)"
            )
        return server

    def _wrap(self, core: _core.BitsArray, *others: EncryptedBits) -> EncryptedBits:
        return EncryptedBits(core, self._params, self._at(*others))

    def _call(self, title: str, work: str, *args: Any) -> Any:
        """What the server makes of this array and others, told before if it takes long, with a bar."""
        arrays = [x for x in args if isinstance(x, EncryptedBits)]
        server, count = self._do(*arrays), max(x.size for x in arrays)
        # Operands with their masks, and a result of the size of the first.
        words = sum(x.size * blocks(str(x.dtype)) for x in (*arrays, arrays[0]))
        require(words * 8 * (self._params.dimensions[0] + 1), title, "compute it in parts")
        cores = [x._core if isinstance(x, EncryptedBits) else x for x in args]
        with forecasting(title, f"{title} of {count} elements") as report:
            found = getattr(server, work)(*cores, report)
        if isinstance(found, tuple):
            return tuple(self._wrap(core, *arrays) for core in found)
        return self._wrap(found, *arrays)

    def _take(self, indices: NDArray[Any]) -> EncryptedBits:
        order = np.ascontiguousarray(indices).reshape(-1).tolist()
        return self._wrap(self._core.take(list(indices.shape), order))

    def __setitem__(self, key: Any, value: Any) -> None:
        """Elements replaced by others, plain or encrypted, in this array's type.

        The key is what NumPy takes, or an encrypted array of booleans, which chooses.
        """
        if isinstance(key, EncryptedBits):
            if key.dtype != BOOL or key.shape != self.shape:
                raise UnsupportedError(
                    f"an encrypted index is a boolean array of the shape {self.shape}; "
                    "elements are picked by plain numbers"
                )
            new = self._lift(value).astype(self.dtype)
            changed = where(key, new._to(self.shape), self)
        else:
            order = self._indices.copy()
            places = np.asarray(order[key])
            new = self._lift(value).astype(self.dtype)
            if _broadcast(new.shape, places.shape) != places.shape:
                raise ShapeError(f"{new.shape} does not fit the {places.shape} elements that are replaced")
            new = new._to(places.shape)
            order[key] = self.size + np.arange(new.size).reshape(new.shape)
            changed = concatenate([self.ravel(), new.ravel()])._take(order)
        self._core, self._home = changed._core, changed._home

    def copy(self) -> EncryptedBits:
        """The same array, which assignments to this one leave alone."""
        return EncryptedBits(self._core, self._params, self._home)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> EncryptedBits:
        """The sum of a diagonal.

        Raises `ShapeError` for an array that has not both axes.
        """
        return self.diagonal(offset, axis1, axis2).sum(axis=-1)

    @staticmethod
    def _refusal(name: str) -> UnsupportedError:
        return unsupported_integers(name)

    def astype(self, dtype: DTypeLike) -> EncryptedBits:
        """The same numbers as another type, wrapping; a number is true unless it is zero.

        Raises `UnsupportedError` for a type that is not encrypted, or an array that is bound to no
        server.
        """
        wanted = _check_dtype(np.dtype(dtype))
        return self if wanted == self.dtype else self._call("astype", "convert", self, str(wanted))

    # Operands.

    def _lift(self, x: Any) -> EncryptedBits:
        """A public operand, in the type that NumPy would give it beside this array."""
        if isinstance(x, EncryptedBits):
            return x
        if isinstance(x, (bool, np.bool_)):
            values: NDArray[Any] = np.asarray(x)
        elif isinstance(x, int):
            values = self._number(x)
        else:
            values = plain(x)
        return self._wrap(self._do().plain(str(values.dtype), list(values.shape), words(values)))

    def _both(self, other: Any) -> tuple[EncryptedBits, EncryptedBits]:
        """Both operands in one type and shape."""
        y = self._lift(other)
        home = self._at(y)
        left = EncryptedBits(self._core, self._params, home)
        right = EncryptedBits(y._core, y._params, home)
        return _same((left, right))

    def _binary(self, name: str, other: Any, reflected: bool = False) -> Any:
        if name in MIRRORED and isinstance(other, (int, float)) and not isinstance(other, (bool, np.bool_)):
            return self._compared(MIRRORED[name] if reflected else name, other)
        x, y = self._both(other)
        if x.dtype == BOOL and name == "subtract":
            raise UnsupportedError("booleans are not subtracted; use ^")
        return x._call(name, "elementwise", name, *((y, x) if reflected else (x, y)))

    def _compared(self, name: str, number: float) -> EncryptedBits:
        """Compared with any number; what no element can be is known without looking."""
        low, high = (0, 1) if self.dtype == BOOL else (np.iinfo(self.dtype).min, np.iinfo(self.dtype).max)
        up = name in ("less", "greater_equal")
        if math.isfinite(number) and (whole := math.ceil(number) if up else math.floor(number)) == number:
            if low <= whole <= high:
                return self._binary(name, np.array(whole, self.dtype))  # type: ignore[no-any-return]
        elif name in ("equal", "not_equal") or not math.isfinite(number):
            whole = 0
        elif low <= whole <= high:
            return self._binary(name, np.array(whole, self.dtype))  # type: ignore[no-any-return]
        truth = {"equal": False, "not_equal": True, "less": number > high, "less_equal": number >= high}.get(
            name
        )
        if truth is None:
            truth = number < low if name == "greater" else number <= low
        return self._lift(np.full(self.shape, truth))

    def _divided(self, other: Any, reflected: bool) -> tuple[EncryptedBits, EncryptedBits]:
        """Quotients and remainders."""
        if isinstance(other, EncryptedBits) or reflected:
            x, y = (v.astype(_integer(v.dtype)) for v in self._both(other))
            return x._call("dividing", "divide", *((y, x) if reflected else (x, y)))  # type: ignore[no-any-return]
        divisor = plain(other if not isinstance(other, int) else self._number(other))
        if not divisor.all():
            raise ZeroDivisionError(
                "encrypted integers are not divided by a public zero; take another divisor"
            )
        x = self.astype(_integer(_check_dtype(np.result_type(self.dtype, divisor.dtype))))
        x = x._to(_broadcast(x.shape, divisor.shape))
        by = np.broadcast_to(divisor, x.shape).astype(x.dtype)
        return x._call("dividing", "divide", x, words(by))  # type: ignore[no-any-return]

    def _number(self, x: int) -> NDArray[Any]:
        """A Python number in the type of the array, as in NumPy."""
        dtype = np.dtype(np.int64) if self.dtype == BOOL else self.dtype
        info = np.iinfo(dtype)
        if not info.min <= x <= info.max:
            raise InputError(f"the number is out of bounds for {dtype}; convert the array first: x.astype(…)")
        return np.asarray(x, dtype)

    def _shift(self, name: str, by: Any) -> EncryptedBits:
        if isinstance(by, EncryptedBits):
            x, shape = self._shifted(name, np.empty(0, by.dtype), by), _shape((self, by))
            y = EncryptedBits(by._core, by._params, x._home).astype(_integer(by.dtype))
            return x._call(name, "shift", name, x._to(shape), y._to(shape))  # type: ignore[no-any-return]
        amounts = plain(by)
        if amounts.size and amounts.min() < 0:
            raise InputError("a shift takes numbers of bits from 0 on")
        shape = _broadcast(self.shape, amounts.shape)
        # Python's own numbers take the array's type.
        number = isinstance(by, int) and not isinstance(by, (bool, np.bool_))
        x = self._shifted(name, 1 if number else np.empty(0, amounts.dtype))._to(shape)
        return x._call(name, "shift", name, x, words(np.broadcast_to(amounts, shape)))  # type: ignore[no-any-return]

    def _shifted(self, name: str, by: Any, *others: EncryptedBits) -> EncryptedBits:
        """In the type that NumPy shifts in; what it has no shifts for stays as it is."""
        if not hasattr(np, name):
            return self
        try:
            dtype = getattr(np, name)(np.empty(0, self.dtype), by).dtype
        except TypeError:
            raise UnsupportedError(
                f"{self.dtype} is not shifted by {by.dtype}, for no type holds both; convert one: x.astype(…)"
            ) from None
        return EncryptedBits(self._core, self._params, self._at(*others)).astype(dtype)

    def dot(self, other: Any) -> EncryptedBits:
        """The matrix product; with a number, the multiple."""
        number = isinstance(other, (int, np.integer)) or getattr(other, "ndim", 1) == 0 or not self.shape
        scaled = other if isinstance(other, EncryptedBits) else array(other)
        found: EncryptedBits = self * scaled if number else shared.dot(self, scaled)
        return found

    def rotate_left(self, by: Any) -> EncryptedBits:
        """Bits moved up by `by`, plain or encrypted; those that leave come back below.

        Raises `InputError` for a number of bits that is none, `ShapeError` for shapes that do not
        broadcast.
        """
        return self._shift("rotate_left", by)

    def rotate_right(self, by: Any) -> EncryptedBits:
        """Bits moved down by `by`, plain or encrypted; those that leave come back above.

        Raises `InputError` for a number of bits that is none, `ShapeError` for shapes that do not
        broadcast.
        """
        return self._shift("rotate_right", by)

    def settle(self) -> EncryptedBits:
        """The same array with its carries propagated now, not by the operation that needs them first.

        Whoever decrypts sums whose carries wait can tell how their two-bit blocks were added up;
        of settled arrays they learn the numbers alone.

        Raises `UnsupportedError` for an array that is bound to no server.
        """
        return self._call("settle", "settle", self)  # type: ignore[no-any-return]

    def lookup(self, table: Any) -> EncryptedBits:
        """`table[x]` for a public table with an entry for each value: 2, 2^8 or 2^16, or `table(x)`.

        The type of the table is that of the result; a list of integers takes that of the index. Indices are
        bools or integers of 8 or 16 bits; negative ones count from the end. With 16 bits each row of 256
        entries that differs from the others is looked up, so that a table of few different rows is cheap.

        Raises `ShapeError` for another number of entries, `UnsupportedError` for a wider index.

        >>> ctx = sd.bits(parameters="insecure_test")  # no security: quick to try
        >>> roots = np.sqrt(np.arange(256)).astype("uint8")
        >>> ctx.decrypt(ctx.encrypt(np.uint8([17, 42])).lookup(roots)).tolist()
        [4, 6]
        """
        if isinstance(table, EncryptedBits):
            raise UnsupportedError("tables are public; choose between encrypted values by sudare.where")
        if callable(table) and self.dtype.itemsize <= 2:
            signed = np.arange(2 if self.dtype == BOOL else 1 << (8 * self.dtype.itemsize)).astype(self.dtype)
            table = [table(value) for value in signed.tolist()]
        values = plain(table)
        if not hasattr(table, "dtype") and values.dtype != BOOL and self.dtype != BOOL:
            info = np.iinfo(self.dtype)
            if values.size and not (info.min <= values.min() and values.max() <= info.max):
                raise InputError(f"an entry is out of bounds for {self.dtype}; give the table a dtype")
            values = values.astype(self.dtype)
        if values.ndim != 1:
            raise ShapeError(f"a table has one axis, not the shape {values.shape}")
        if self.dtype.itemsize > 2:
            raise UnsupportedError(
                f"an index of {8 * self.dtype.itemsize} bits has no table; convert it: x.astype('uint16')"
            )
        if self.dtype.itemsize == 2 and len(values) != 1 << 16:
            raise ShapeError(f"a table for {self.dtype} has {1 << 16} entries, not {len(values)}")
        return self._call("lookup", "lookup", self, words(values), str(values.dtype))  # type: ignore[no-any-return]

    def sum(
        self, axis: Axis = None, *, keepdims: bool = False, dtype: DTypeLike | None = None
    ) -> EncryptedBits:
        """The sum over an axis or everything, in NumPy's type for it unless `dtype` says another.

        Raises `ShapeError` for an axis that there is not, `UnsupportedError` for a type that is not
        encrypted.
        """
        wanted = np.sum(np.zeros(0, self.dtype)).dtype if dtype is None else np.dtype(dtype)
        return self.astype(wanted)._reduced("add", axis, keepdims)

    def min(self, axis: Axis = None, *, keepdims: bool = False) -> EncryptedBits:
        """The smallest element.

        Raises `ShapeError` for an axis that there is not, `UnsupportedError` for booleans or an array
        that is bound to no server.
        """
        return self._reduced("minimum", axis, keepdims)

    def max(self, axis: Axis = None, *, keepdims: bool = False) -> EncryptedBits:
        """The largest element.

        Raises `ShapeError` for an axis that there is not, `UnsupportedError` for booleans or an array
        that is bound to no server.
        """
        return self._reduced("maximum", axis, keepdims)

    def prod(
        self, axis: Axis = None, *, keepdims: bool = False, dtype: DTypeLike | None = None
    ) -> EncryptedBits:
        """The product over an axis or everything, in NumPy's type for it unless `dtype` says another.

        Raises `ShapeError` for an axis that there is not, `UnsupportedError` for a type that is not
        encrypted.
        """
        wanted = np.prod(np.zeros(0, self.dtype)).dtype if dtype is None else np.dtype(dtype)
        return self.astype(wanted)._reduced("multiply", axis, keepdims)

    def mean(
        self, axis: Axis = None, *, dtype: DTypeLike | None = None, keepdims: bool = False
    ) -> EncryptedBits:
        """The mean, cut to a whole number, of an integer `dtype`.

        Raises `UnsupportedError` without one, since a mean of integers is no integer.
        """
        if dtype is None or np.dtype(dtype).kind not in "iu":
            raise UnsupportedError(
                "a mean of integers is no integer: decrypt x.sum() and divide by x.size, "
                "or take the whole part by x.mean(dtype='int64')"
            )
        total = self.sum(axis, keepdims=keepdims, dtype=dtype)
        count = np.array(self.size // max(total.size, 1), total.dtype)
        if total.dtype.kind == "u":
            return total // count  # type: ignore[no-any-return]
        # Towards zero.
        whole = abs(total) // count
        return where(total < 0, -whole, whole)

    def cumsum(self, axis: int | None = None, *, dtype: DTypeLike | None = None) -> EncryptedBits:
        """The sums of the first elements, in NumPy's type for them unless `dtype` says another.

        Raises `ShapeError` for an axis that there is not, `UnsupportedError` for a type that is not
        encrypted.
        """
        wanted = np.sum(np.zeros(0, self.dtype)).dtype if dtype is None else np.dtype(dtype)
        return self.astype(wanted)._scanned("add", axis)

    def cumprod(self, axis: int | None = None, *, dtype: DTypeLike | None = None) -> EncryptedBits:
        """The products of the first elements, in NumPy's type for them unless `dtype` says another.

        Raises `ShapeError` for an axis that there is not, `UnsupportedError` for a type that is not
        encrypted.
        """
        wanted = np.prod(np.zeros(0, self.dtype)).dtype if dtype is None else np.dtype(dtype)
        return self.astype(wanted)._scanned("multiply", axis)

    def clip(self, min: Any = None, max: Any = None) -> EncryptedBits:  # noqa: A002 (NumPy's names)
        """Elements under the least or over the largest value become that; both plain or encrypted."""
        x = self if min is None else maximum(self, min)
        return x if max is None else minimum(x, max)

    def sort(self, axis: int = -1) -> None:
        """Sorts along an axis, in place. `numpy.sort(x)` gives a sorted copy."""
        found = _ordered(self, axis)
        self._core, self._home = found._core, found._home

    def argmax(self, axis: int | None = None, *, keepdims: bool = False) -> EncryptedBits:
        """The number of the first of the largest elements.

        Raises `ShapeError` for an axis that there is not, or that has no element.
        """
        return self._first_best(True, axis, keepdims)

    def argmin(self, axis: int | None = None, *, keepdims: bool = False) -> EncryptedBits:
        """The number of the first of the smallest elements.

        Raises `ShapeError` for an axis that there is not, or that has no element.
        """
        return self._first_best(False, axis, keepdims)

    def any(self, axis: Axis = None, *, keepdims: bool = False) -> EncryptedBits:
        """Whether an element is true.

        Raises `ShapeError` for an axis that there is not, `UnsupportedError` for an array that is
        bound to no server.
        """
        return self.astype(bool)._reduced("any", axis, keepdims)

    def all(self, axis: Axis = None, *, keepdims: bool = False) -> EncryptedBits:
        """Whether every element is true.

        Raises `ShapeError` for an axis that there is not, `UnsupportedError` for an array that is
        bound to no server.
        """
        return self.astype(bool)._reduced("all", axis, keepdims)

    def _along(self, axis: Axis, keepdims: bool) -> tuple[EncryptedBits, Shape]:
        """The axes to reduce first, as one, and the shape of the result."""
        if axis is None or (not self.shape and axis in (0, -1)):
            axis = tuple(range(self.ndim))
        over = [shared.axis_of(self, n) for n in (axis if isinstance(axis, tuple) else (axis,))]
        if len(set(over)) != len(over):
            raise ShapeError(f"an axis is named twice in {axis}")
        kept = [n for n in range(self.ndim) if n not in over]
        order = np.moveaxis(self._indices, over, range(len(over)))
        order = order.reshape(math.prod(self.shape[n] for n in over), *(self.shape[n] for n in kept))
        if not order.shape[0]:
            raise ShapeError("a reduction needs at least one element")
        shape = [1 if n in over else side for n, side in enumerate(self.shape) if keepdims or n in kept]
        return self._take(order), tuple(shape)

    def _reduced(self, name: str, axis: Axis, keepdims: bool) -> EncryptedBits:
        x, shape = self._along(axis, keepdims)
        return x._call(name, "reduce", name, x).reshape(shape)  # type: ignore[no-any-return]

    def _first_best(self, largest: bool, axis: int | None, keepdims: bool) -> EncryptedBits:
        x, shape = self._along(axis, keepdims)
        return x._call("argmax" if largest else "argmin", "first_best", x, largest).reshape(shape)  # type: ignore[no-any-return]

    def _scanned(self, name: str, axis: int | None) -> EncryptedBits:
        return _by_lines(self, axis, lambda x: x._call("scan", "scan", name, x))

    # NumPy's protocols.

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Namespace:
        """The Array API's functions that take encrypted integers.

        Raises `UnsupportedError` for a version of it that there is not.
        """
        checked(api_version)
        return _namespace()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Functions of NumPy of which one operand is encrypted."""
        name = ufunc.__name__
        known = {"reduce": REDUCTIONS, "accumulate": SCANS}.get(method, {})
        if name in known:
            return shared.along_first(f"{name}.{method}", getattr(self, known[name]), kwargs)
        if method == "outer" and not kwargs:
            return shared.outer(ufunc, *inputs)
        if name in shared.UFUNCS and method == "__call__" and set(kwargs) <= {"axis"}:
            return shared.UFUNCS[name](*inputs, **kwargs)
        if method != "__call__":
            raise unsupported_integers(name, inputs, method)
        if kwargs:
            raise UnsupportedError(
                f"numpy.{name} of encrypted integers does not take {', '.join(kwargs)}; convert by "
                "x.astype(…)"
            )
        if name not in OPERATIONS:
            raise unsupported_integers(name, inputs)
        strange = [x for x in inputs if not _understood(x)]
        if strange and name in ("equal", "not_equal"):
            # Python would compare identities.
            raise UnsupportedError(
                "encrypted integers are compared with integers and booleans, not with "
                f"{type(strange[0]).__name__}"
            )
        return NotImplemented if strange else OPERATIONS[name](*inputs)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Functions of NumPy of which one argument is encrypted."""
        return shared.called(FUNCTIONS, func, args, kwargs, unsupported_integers)


def _understood(x: object) -> bool:
    return isinstance(x, (EncryptedBits, bool, int, float, complex, np.ndarray, np.generic, list, tuple))


def _broadcast(*shapes: Shape) -> Shape:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = " and ".join(str(s) for s in shapes)
        raise ShapeError(f"shapes {listed} do not go together") from None


def _shape(arrays: Sequence[EncryptedBits]) -> Shape:
    return _broadcast(*(x.shape for x in arrays))


def _same(arrays: tuple[EncryptedBits, EncryptedBits]) -> tuple[EncryptedBits, EncryptedBits]:
    """Both in the type that NumPy promotes to, and in one shape."""
    x, y = arrays
    dtype = _check_dtype(np.result_type(x.dtype, y.dtype))
    shape = _shape(arrays)
    return x.astype(dtype)._to(shape), y.astype(dtype)._to(shape)


def _integer(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type in which NumPy divides: booleans are bytes."""
    return np.dtype(np.int8) if dtype == BOOL else dtype


def _first(arrays: Sequence[Any]) -> EncryptedBits:
    for x in arrays:
        if isinstance(x, EncryptedBits):
            return x
    raise UnsupportedError("one operand has to be encrypted; for plain ones use NumPy")


def where(condition: Any, x: Any, y: Any) -> EncryptedBits:
    """Elements of `x` where the condition holds, of `y` elsewhere; any of the three may be encrypted.

    Raises `ShapeError` for shapes that do not go together, `UnsupportedError` if none is encrypted.
    """
    ours = _first([condition, x, y])
    if not isinstance(x, EncryptedBits) and not isinstance(y, EncryptedBits):
        x, y = (v if isinstance(v, (int, float)) else array(v) for v in (x, y))
        values = np.result_type(x, y)
        x, y = np.asarray(x, values), np.asarray(y, values)
        a, b = _same((ours._lift(x), ours._lift(y)))
    elif isinstance(x, EncryptedBits):
        a, b = x._both(y)
    else:
        b, a = y._both(x)
    if not isinstance(condition, EncryptedBits):
        # What everybody sees is chosen by places.
        mask = array(condition).astype(bool)
        shape = _broadcast(a.shape, mask.shape)
        both = concatenate([a.ravel(), b.ravel()])
        places = (np.broadcast_to(a._indices + start, shape) for start in (0, a.size))
        return both._take(np.where(mask, *places))
    c = condition
    c = EncryptedBits(c._core, c._params, c._at(a, b)).astype(bool)
    shape = _shape((a, b, c))
    a, b, c = a._to(shape), b._to(shape), c._to(shape)
    return c._call("where", "choice", c, a, b)  # type: ignore[no-any-return]


def minimum(x: Any, y: Any) -> EncryptedBits:
    """The smaller of two elements; one operand may be plain."""
    return _binary("minimum", x, y)  # type: ignore[no-any-return]


def maximum(x: Any, y: Any) -> EncryptedBits:
    """The larger of two elements; one operand may be plain."""
    return _binary("maximum", x, y)  # type: ignore[no-any-return]


def concatenate(
    arrays: Sequence[Any], axis: int | None = 0, *, dtype: DTypeLike | None = None
) -> EncryptedBits:
    """Arrays one after the other along an axis, or all their elements."""
    ours = _first(arrays)
    if dtype is not None:
        return concatenate(arrays, axis).astype(dtype)
    lifted = [ours._lift(x) for x in arrays]
    dtype = _check_dtype(np.result_type(*(x.dtype for x in lifted)))
    lifted = [EncryptedBits(x._core, x._params, x._at(ours)).astype(dtype) for x in lifted]
    offsets = np.cumsum([0, *(x.size for x in lifted)])
    try:
        order = np.concatenate([x._indices + o for x, o in zip(lifted, offsets, strict=False)], axis=axis)
    except ValueError as error:
        raise ShapeError(str(error)) from None
    flat = ours._wrap(_core.BitsArray.concatenated([x._core for x in lifted]), *lifted)
    return flat._take(order)


def _binary(name: str, x: Any, y: Any) -> Any:
    if isinstance(x, EncryptedBits):
        return x._binary(name, y)
    return _first([y])._binary(name, x, True)


def _logical(name: str, *operands: Any) -> Any:
    flags = [_first(operands)._lift(x).astype(bool) for x in operands]
    return ~flags[0] if name == "logical_not" else _binary("bitwise_" + name.removeprefix("logical_"), *flags)


def _divided(x: Any, y: Any) -> tuple[EncryptedBits, EncryptedBits]:
    return x._divided(y, False) if isinstance(x, EncryptedBits) else y._divided(x, True)


def _quotient(x: Any, y: Any) -> NoReturn:
    raise UnsupportedError("a quotient of integers is no integer: write x // y, or divide after decryption")


def _shifted(name: str, x: Any, by: Any) -> EncryptedBits:
    return (x if isinstance(x, EncryptedBits) else by._lift(x))._shift(name, by)


def _power(x: Any, exponent: Any) -> EncryptedBits:
    if not isinstance(x, EncryptedBits):
        if exponent.dtype != np.uint8 or not isinstance(x, int):
            raise UnsupportedError(
                "a whole number is raised to encrypted uint8 exponents; convert them: x.astype('uint8')"
            )
        return exponent.lookup(np.array([pow(x, k, 256) for k in range(256)], np.uint8))  # type: ignore[no-any-return]
    if isinstance(exponent, EncryptedBits):
        raise UnsupportedError(
            "an exponent is public; where the base is, look the power up: "
            "exponent.lookup(base ** np.arange(256))"
        )
    if isinstance(exponent, (bool, np.bool_)) or not isinstance(exponent, (int, np.integer)):
        raise UnsupportedError("encrypted integers are raised to one whole number; loop over several")
    if exponent < 0:
        raise InputError("an integer to a negative power is not an integer; take powers from 0 on")
    if x.dtype == BOOL:
        raise UnsupportedError("booleans have no powers; convert them: x.astype('uint8')")
    return x._call("power", "power", x, int(exponent))  # type: ignore[no-any-return]


def _matmul(left: Any, right: Any) -> EncryptedBits:
    """The matrix product in the elements' own type, wrapping; of booleans whether any pair is true."""
    x, y = _first([left, right])._lift(left), _first([left, right])._lift(right)
    if 0 in (x.ndim, y.ndim):
        raise ShapeError("a matrix product takes vectors and matrices; multiply by a number with *")
    row, column = x.ndim == 1, y.ndim == 1
    x, y = x[None] if row else x, y[:, None] if column else y
    if x.shape[-1] != y.shape[-2]:
        raise ShapeError(f"matrix product: shapes {np.shape(left)} and {np.shape(right)} do not go together")
    if not x.shape[-1]:
        raise ShapeError(
            "a matrix product needs at least one term; without one its result is public: numpy.zeros"
        )
    dtype, batch = _check_dtype(np.result_type(x.dtype, y.dtype)), _broadcast(x.shape[:-2], y.shape[:-2])
    home = x._at(y)
    x, y = (EncryptedBits(v._core, v._params, home).astype(dtype) for v in (x, y))
    x, y = (v._to((*batch, *v.shape[-2:])).reshape((-1, *v.shape[-2:])) for v in (x, y))
    shape = (*batch, *(() if row else (x.shape[1],)), *(() if column else (y.shape[2],)))
    return x._call("multiplying", "matmul", x, y).reshape(shape)  # type: ignore[no-any-return]


def _by_lines(x: EncryptedBits, axis: int | None, work: Callable[[EncryptedBits], Any]) -> EncryptedBits:
    """What is made of lines along an axis, or of all elements in a row."""
    if axis is None:
        return work(x.ravel())  # type: ignore[no-any-return]
    at = shared.axis_of(x, axis)
    done = work(x._take(np.moveaxis(x._indices, at, 0)))
    return done._take(np.moveaxis(done._indices, 0, at))  # type: ignore[no-any-return]


def _ordered(x: EncryptedBits, axis: int | None) -> EncryptedBits:
    return _by_lines(x, axis, lambda lines: lines._call("sorting", "sort", lines))


def _sign(x: EncryptedBits) -> EncryptedBits:
    if x.dtype == BOOL:
        raise UnsupportedError("booleans have no sign; convert them: x.astype('int8')")
    above = (x > 0).astype(x.dtype)
    return above - (x < 0).astype(x.dtype) if x.dtype.kind == "i" else above  # type: ignore[no-any-return]


#: Comparisons, and what they are with their operands the other way round.
MIRRORED = {
    **{"equal": "equal", "not_equal": "not_equal", "less": "greater", "greater": "less"},
    **{"less_equal": "greater_equal", "greater_equal": "less_equal"},
}
BINARY = (
    *("add", "subtract", "multiply", "minimum", "maximum", "bitwise_and", "bitwise_or", "bitwise_xor"),
    *MIRRORED,
)
LOGICAL = ("logical_and", "logical_or", "logical_xor", "logical_not")
#: NumPy's operators and functions of each element, of which one operand is encrypted.
OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: partial(_binary, name) for name in BINARY},
    **{name: partial(_logical, name) for name in LOGICAL},
    **{name: partial(_shifted, name) for name in ("left_shift", "right_shift")},
    "divmod": _divided,
    "floor_divide": lambda x, y: _divided(x, y)[0],
    "remainder": lambda x, y: _divided(x, y)[1],
    "divide": _quotient,
    "power": _power,
    "matmul": _matmul,
    "negative": lambda x: x._call("negative", "negative", x),
    "absolute": lambda x: where(x < 0, -x, x) if x.dtype.kind == "i" else x,
    "sign": _sign,
    "square": lambda x: (y := x.astype(_integer(x.dtype))) * y,
    **dict.fromkeys(("invert", "bitwise_invert"), lambda x: x._call("invert", "invert", x)),
    **dict.fromkeys(("floor", "ceil", "trunc"), lambda x: x),
}
REDUCTIONS = {
    "add": "sum",
    "multiply": "prod",
    "minimum": "min",
    "maximum": "max",
    "logical_or": "any",
    "logical_and": "all",
}
SCANS = {"add": "cumsum", "multiply": "cumprod"}


def _round(a: EncryptedBits, decimals: int = 0) -> EncryptedBits:
    if decimals < 0:
        raise UnsupportedError(f"write x // {10**-decimals} * {10**-decimals}, which rounds down")
    return a


def _array_equal(a1: Any, a2: Any) -> Any:
    if np.shape(a1) != np.shape(a2):
        return False
    return (a1 == a2).all()


def _clipped(a: Any, a_min: Any = None, a_max: Any = None, **named: Any) -> EncryptedBits:
    low, high = named.get("min", a_min), named.get("max", a_max)
    x = a if isinstance(a, EncryptedBits) else _first([low, high])._lift(a)
    return x.clip(low, high)


def _method(name: str) -> Callable[..., Any]:
    """A function that is an array's method; `dtype` and `keepdims` are by their names."""

    def done(a: EncryptedBits, axis: Any = None, dtype: Any = None, **more: Any) -> Any:
        return getattr(a, name)(axis, **more, **({} if dtype is None else {"dtype": dtype}))

    return done


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **shared.FUNCTIONS,
    "where": where,
    "concatenate": concatenate,
    "broadcast_to": lambda array, shape: array._to(tuple(np.atleast_1d(shape).tolist())),
    **{name: _method(name) for name in ("sum", "min", "max", "any", "all", "prod", "mean", "cumprod")},
    **{name: _method(name) for name in ("cumsum", "argmax", "argmin")},
    "amin": _method("min"),
    "amax": _method("max"),
    "ptp": lambda a, axis=None, keepdims=False: (
        a.max(axis, keepdims=keepdims) - a.min(axis, keepdims=keepdims)
    ),
    "clip": _clipped,
    "sort": lambda a, axis=-1: _ordered(a, axis),
    "dot": lambda a, b: (
        a.dot(b) if isinstance(a, EncryptedBits) else b.dot(a) if not np.shape(a) else shared.dot(a, b)
    ),
    "polyval": lambda p, x: functools.reduce(lambda y, c: y * x + c, list(array(p))),
    "isin": shared.isin,
    "round": _round,
    "around": _round,
    "array_equal": _array_equal,
    "cumulative_prod": lambda x, *, axis=None, dtype=None: x.cumprod(axis, dtype=dtype),
    "count_nonzero": lambda a, axis=None, *, keepdims=False: (a != 0).sum(axis, keepdims=keepdims),
}


@lru_cache(maxsize=1)
def _namespace() -> Namespace:
    return Namespace({*shared.UFUNCS, *OPERATIONS, *FUNCTIONS}, unsupported_integers)


def _unpickle(params: bytes, data: bytes) -> EncryptedBits:
    made = parameters(params)
    return EncryptedBits(_core.BitsArray.from_bytes(made, data), made, None)
