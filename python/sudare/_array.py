"""The operators and NumPy protocols that expressions and encrypted matrices share.

Nothing here computes. Shapes follow NumPy's rules; below, everything has rows and columns: a
vector is held as one row or one column, a number as a 1×1 matrix, and `dropped` says which of the
two axes NumPy would not show.
"""

from __future__ import annotations

import functools
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NoReturn, Protocol, TypeAlias, TypeVar, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike, NDArray

from . import _numpy as shared
from ._errors import InputError, ShapeError, UnsupportedError
from ._namespace import Namespace, checked
from ._numpy import flattened
from ._opaque import Opaque
from ._polynomial import Interval, polynomial, powers
from ._remedies import REALS, NoAttributeError, remedy, unsupported, written
from ._values import array, real

Floats: TypeAlias = NDArray[np.float64]
Shape: TypeAlias = tuple[int, ...]
Core: TypeAlias = Any
Operation: TypeAlias = dict[str, Any]
Self = TypeVar("Self", bound="ArrayOperators")

ROW, COLUMN, MATRIX, NUMBER = (0,), (1,), (), (0, 1)
WHOLE_BATCH = "the batch axis stays whole; begin an index with : and pick after decryption"
# The largest double: no number is larger.
LARGEST = float(np.finfo(np.float64).max)
# Operations by the names of NumPy's functions.
NAMES = {"add": "add", "subtract": "sub", "multiply": "mul"}


@dataclass(frozen=True)
class Lines:
    """Line `start + step * i` of an operand goes to line `at + stride * i` of `size`, for i below `count`."""

    start: int
    step: int
    count: int
    at: int
    stride: int
    size: int


class Place(Protocol):
    """Where operations are done on operands that have rows and columns: a session, an expression."""

    def apply(self, operation: Operation, *operands: Core) -> Core:
        """An operation as the Rust type of this name has it: `{"op": "sum", "axis": 0}`."""

    def lift(self, values: Floats) -> Core:
        """A plain matrix as an operand."""

    def by_elements(self, length: int) -> bool:
        """Whether a product with a plain vector of a length is one of each element, and its sums."""


def taken(axis: int, lines: Lines) -> Operation:
    """Rows (axis 0) or columns in other places."""
    return {"op": "take", "axis": axis, "lines": asdict(lines)}


class Operators(NDArrayOperatorsMixin):
    """NumPy's operators and functions, as operations for the place where an operand is."""

    __slots__ = ()
    #: What there is of `UFUNCS`, where it is less than all.
    _computes: ClassVar[dict[str, Callable[..., Any]] | None] = None

    _product: Callable[..., Any]
    _elementwise: Callable[..., Any]

    # Nothing changes an encrypted matrix: x += y names the sum x.
    __iadd__ = NDArrayOperatorsMixin.__add__
    __isub__ = NDArrayOperatorsMixin.__sub__
    __imul__ = NDArrayOperatorsMixin.__mul__
    __imatmul__ = NDArrayOperatorsMixin.__matmul__
    __itruediv__ = NDArrayOperatorsMixin.__truediv__
    __ipow__ = NDArrayOperatorsMixin.__pow__

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Namespace:
        """The Array API's functions that take encrypted matrices.

        Raises `UnsupportedError` for a version of it that there is not.
        """
        checked(api_version)
        return _namespace()

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Operators of NumPy in which one operand is encrypted."""
        if method in ("reduce", "accumulate") and ufunc is np.add:
            ours = cast("ArrayOperators", self)
            return shared.along_first(
                f"add.{method}", ours.sum if method == "reduce" else ours.cumsum, kwargs
            )
        if ufunc in (np.equal, np.not_equal):
            Opaque._refuse(cast("Opaque", self), "cannot be compared")
        known = UFUNCS if self._computes is None else self._computes
        handler = known.get(ufunc.__name__) if method in ("__call__", "outer") else None
        if handler is None:
            raise unsupported(ufunc.__name__, inputs, method)
        axis = {"axis": kwargs.pop("axis")} if ufunc.__name__ == "vecdot" and "axis" in kwargs else {}
        _refuse(ufunc.__name__, kwargs)
        return shared.outer(handler, *inputs) if method == "outer" else handler(*inputs, **axis)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Functions of NumPy in which one argument is encrypted."""
        return shared.called(FUNCTIONS, func, args, kwargs, unsupported)


class ArrayOperators(Operators, shared.Methods, Opaque, ABC):
    """A matrix, vector or number that is computed with before anybody can see it."""

    _core: Core
    _dropped: Shape

    @property
    @abstractmethod
    def _place(self) -> Place:
        """What computes."""

    @abstractmethod
    def _wrap(self: Self, core: Core, dropped: Shape) -> Self:
        """A result of the same kind."""

    def _adopt(self: Self, other: Any) -> Self:
        """The operand, able to compute if `other` is."""
        return self

    @property
    def _bound(self) -> float | None:
        """Bound on the absolute values of the elements, as far as it is known."""
        return getattr(self._core, "max_abs", None)

    @property
    def _batch(self) -> Shape:
        """The batch axis, if there is one."""
        return (self._core.batch,) if self._core.batch > 1 else ()

    @property
    def shape(self) -> Shape:
        """The shape that decryption gives. A batch comes first."""
        return self._batch + tuple(n for axis, n in enumerate(self._core.shape) if axis not in self._dropped)

    @property
    def dtype(self) -> np.dtype[Any]:
        """What decryption gives."""
        return np.dtype(np.float64)

    @property
    def T(self: Self) -> Self:  # noqa: N802 (NumPy's name)
        """The transpose."""
        return self.transpose()

    def __getitem__(self, key: Any) -> Any:
        """Slices, picks, new axes and one list or mask of lines, as NumPy has them.

        One level where lines of a ciphertext's tile stay behind. A list of more than eight pieces is a
        product with a plain matrix. What is empty is no secret: NumPy's empty array.

        Raises `ShapeError` for what is not there, `UnsupportedError` for other indices.
        """
        return _picked(self, key if isinstance(key, tuple) else (key,))

    def __setitem__(self, key: Any, value: Any) -> None:
        """Elements replaced by others, plain or encrypted. What was picked before stays as it is.

        The key is what NumPy takes, and plain; encrypted values go where neighbouring lines are.

        Raises `ShapeError` for values that do not fit, `UnsupportedError` for an encrypted key, or encrypted
        values for elements that are no block.
        """
        changed = _assigned(self, key, value)
        self._core, self._dropped = changed._core, changed._dropped

    def __iter__(self: Self) -> Iterator[Self]:
        return (self[at] for at in range(len(self)))

    def __round__(self, digits: int = 0) -> NoReturn:
        raise unsupported("round")

    def __getattr__(self, name: str) -> NoReturn:
        """What an array has and an encrypted one has not says what to write."""
        if name in REALS and hasattr(np.ndarray, name):
            raise NoAttributeError(f"an encrypted matrix has no {name}; write {remedy(name, [self])}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def copy(self: Self) -> Self:
        """The same matrix, which assignments to this one leave alone."""
        return self._wrap(self._core, self._dropped)

    def dot(self: Self, other: Any) -> Self:
        """The matrix product, as `@`; with a number, the multiple.

        Raises `ShapeError` for shapes that do not go together, `UnsupportedError` for complex
        numbers, `InputError` for infinite ones.
        """
        return cast("Self", _dot(self, other))

    def transpose(self: Self, *axes: Any) -> Self:
        """The transpose; a vector stays as it is, as in NumPy.

        Raises `ShapeError` for another number of axes, or an order that moves the batch.
        """
        order = tuple(axes[0]) if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
        order = tuple(range(self.ndim))[::-1] if order in ((), (None,)) else order
        if not all(isinstance(a, int) for a in order) or sorted(a % max(self.ndim, 1) for a in order) != list(
            range(self.ndim)
        ):
            raise ShapeError(
                f"{order} is not an order of the axes of shape {self.shape}; name each axis once"
            )
        if self._batch and order[0] % self.ndim:
            raise ShapeError("the batch axis stays first; numpy.matrix_transpose transposes each member")
        last = order[-2:]
        if self._dropped or last[0] % self.ndim < last[1] % self.ndim:
            return self
        return self._apply({"op": "transpose"}, dropped=MATRIX)

    @property
    def mT(self: Self) -> Self:  # noqa: N802 (NumPy's name)
        """The transpose of each member of a batch; of a matrix, the transpose.

        Raises `ShapeError` for a vector.
        """
        if self._dropped:
            raise ShapeError("a matrix transpose takes a matrix, not a number or a vector")
        return self._apply({"op": "transpose"}, dropped=MATRIX)

    def sum(self: Self, axis: Any = None, *, keepdims: bool = False, dtype: DTypeLike | None = None) -> Self:
        """The sum over an axis or over everything.

        Raises `ShapeError` for an axis that there is not, or a batch's, `UnsupportedError` for another type
        than doubles.
        """
        self._check_dtype(dtype)
        if not self.shape and axis in (0, -1):
            # NumPy's own exception: a number is its sum over its only axis.
            axis = None
        over = self._core_axes(axis)
        core = self._core
        for at in over:
            core = self._place.apply({"op": "sum", "axis": at}, core)
        return self._wrap(core, self._dropped if keepdims else tuple(sorted({*self._dropped, *over})))

    def mean(self: Self, axis: Any = None, *, keepdims: bool = False, dtype: DTypeLike | None = None) -> Self:
        """The mean over an axis or over everything.

        Raises `ShapeError` for an axis that there is not, or a batch's, `UnsupportedError` for another type
        than doubles.
        """
        self._check_dtype(dtype)
        count = 1
        for at in self._core_axes(axis):
            count *= self._core.shape[at]
        return self.sum(axis, keepdims=keepdims)._scale(1 / count)

    def bounded(self: Self, max_abs: float) -> Self:
        """The same matrix, of which you know that its elements are up to `max_abs`, in a context or a plan.

        Bounds grow with every operation, and what a refresh keeps is a part of its bound. What is said has to
        hold. It costs nothing, but for a context's table a level where a row or column was added to it.

        Raises `InputError` for what is no number, `PlanError` where the plan has no such bound.
        """
        return self._apply({"op": "bounded", "max_abs": real(max_abs, "max_abs")})

    def var(self: Self, axis: Any = None, *, ddof: float = 0, keepdims: bool = False) -> Self:
        """The variance over an axis or over everything, with n − `ddof` in the denominator.

        Raises `InputError` where no more than `ddof` numbers are.
        """
        count = math.prod(self._core.shape[at] for at in self._core_axes(axis))
        if count <= ddof:
            raise InputError(
                f"a variance of {count} numbers does not have ddof={ddof} degrees of freedom to spare; take "
                "a smaller ddof"
            )
        centred: Self = self - self.mean(axis, keepdims=True)
        squares: Self = centred * centred
        return squares.sum(axis, keepdims=keepdims)._scale(1 / (count - ddof))

    def reshape(self: Self, *shape: Any, order: str = "C") -> Self:
        """The same elements in their order, in rows of another length; with "F" in columns.

        Free where axes of length 1 come or go. Otherwise each row is moved by itself: two or four
        levels in all.

        Raises `ShapeError` for another number of elements, `UnsupportedError` for a batch.
        """
        sides = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        if order != "C":
            return cast(Self, shared.in_order(self, tuple(sides), order))
        return _reshaped(self, tuple(sides))

    def trace(self: Self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Self:
        """The sum of a diagonal, the main one or another above (`offset` > 0) or below it.

        Of a batch those of its members, `axis1=-2, axis2=-1`.

        Raises `ShapeError` for a vector, or a batch's axis.
        """
        if len(self._members) != 2:
            raise ShapeError(f"a trace is that of one matrix, not of the shape {self.shape}")
        diagonal: Self = self * _along_diagonal(self, offset, axis1, axis2)
        return diagonal.sum(axis=(-2, -1))

    def diagonal(self: Self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Self:
        """A diagonal of a matrix, the main one or another above (`offset` > 0) or below it.

        Raises `ShapeError` for a vector or a batch.
        """
        if len(self._members) != 2 or self._batch:
            raise ShapeError(f"a diagonal is that of one matrix, not of the shape {self.shape}")
        mask = _along_diagonal(self, offset, axis1, axis2)
        diagonal: Self = self * mask
        return cast("Self", diagonal.sum(axis=1)[np.flatnonzero(mask.any(axis=1))])

    def cumsum(self: Self, axis: int | None = None, *, dtype: DTypeLike | None = None) -> Self:
        """The sums of the first elements: a product with a plain triangle.

        Raises `ShapeError` for an axis that there is not, or a batch's, `UnsupportedError` for another type
        than doubles.
        """
        self._check_dtype(dtype)
        x: Self = self.ravel() if axis is None or not self.ndim else self
        at = shared.axis_of(x, 0 if axis is None else axis)
        x._core_axes(at)
        lower = np.tril(np.ones((x.shape[at], x.shape[at])))
        return cast("Self", x @ lower.T if at == x.ndim - 1 else lower @ x)

    def _check_dtype(self, dtype: DTypeLike | None) -> None:
        """Refuses to compute in another type."""
        if dtype is not None and np.dtype(dtype) not in (self.dtype, np.dtype(np.float64)):
            raise UnsupportedError(
                f"encrypted matrices stay {self.dtype}; convert what decrypt(x) gives: "
                f".astype({np.dtype(dtype).name!r})"
            )

    def _lines(self: Self, at: int, order: NDArray[Any]) -> Any:
        """Lines along an axis in another order: few slices, or else a product with a plain matrix."""
        if self._batch and at == 0:
            raise ShapeError(WHOLE_BATCH)
        before = (slice(None),) * at
        if not len(order):
            return self[(*before, slice(0, 0))]
        runs = progressions([int(line) for line in order])
        if len(runs) > MOST_PIECES:
            chosen = np.eye(self.shape[at])[order]
            return self @ chosen.T if at == self.ndim - 1 else chosen @ self
        parts = [self[(*before, run)] for run in runs]
        return parts[0] if len(parts) == 1 else concatenate(parts, at)

    def apply(self: Self, function: Any, interval: Interval | None = None, degree: int | None = None) -> Self:
        """A function of every element, by the nearest polynomial of a degree on an interval.

        `function` takes one number; or it is what `sudare.fit` made, which tells its error, or one of
        NumPy's polynomials (`Polynomial`, `Chebyshev`), whose interval is its domain unless another is
        given. Elements have to lie in the interval. Where their bound is over both of its ends they are
        refused, by a plan when it is made. In a context, whose bounds are powers of two, they are refused
        from twice the ends on, and below that the error that the result carries is that of elements as far
        out. That elements are not under an end that is nearer to zero is your word. A plan tells the
        interval and the polynomial's distance to the function, which is a part of its error (see `fit`). In
        a context it takes the logarithm of the degree in levels (15: 4), and one more unless the interval
        is about as wide as [-1, 1], or after a refresh as the bound; in a plan up to two more.

        Raises `InputError` for an interval or a degree that is none and for elements that may be outside,
        `UnsupportedError` for what is no function of a number, `LevelError` where levels do not suffice.
        """
        fitted = polynomial(function, interval, degree, self._bound)
        return self._apply(fitted._operation())

    # How shapes go together.

    @property
    def _members(self) -> Shape:
        """The shape of each member of a batch; of a matrix, its shape."""
        return self.shape[len(self._batch) :]

    def _apply(self: Self, operation: Operation, dropped: Shape | None = None) -> Self:
        """An operation on it alone."""
        core = self._place.apply(operation, self._core)
        return self._wrap(core, self._dropped if dropped is None else dropped)

    def _scale(self: Self, factor: float) -> Self:
        return self._apply({"op": "scale", "by": factor})

    def _shift(self: Self, number: float) -> Self:
        return self._apply({"op": "shift", "by": number})

    def _core_axes(self, axis: Any) -> Shape:
        """The axes of rows and columns that NumPy's `axis` means."""
        shown: list[int | None] = [None] * len(self._batch)
        shown += [a for a in (0, 1) if a not in self._dropped]
        wanted = range(len(shown)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        try:
            found = {shown[range(len(shown))[a]] for a in wanted}
        except (IndexError, TypeError):
            raise ShapeError(f"shape {self.shape} has no axis {axis!r}") from None
        axes = tuple(sorted(a for a in found if a is not None))
        if None in found:
            raise ShapeError("there is no sum over a batch; sum after decryption")
        return axes

    def _turned(self, dropped: Shape) -> Core:
        """A vector as a row or as a column; a matrix as it is."""
        same = self._dropped == dropped or self._dropped in (MATRIX, NUMBER)
        return self._core if same else self._place.apply({"op": "transpose"}, self._core)

    def _product(self: Self, other: Any, *, reflected: bool = False) -> Self:
        if isinstance(other, type(self)):
            self, right = self._adopt(other), other
        elif scalar(other) is not None:
            raise ShapeError("a matrix product takes matrices; multiply by a number with *")
        elif empty(other):
            return cast("Self", _of_empty(np.matmul, self, other, reflected))
        else:
            values = plain(other)
            if (made := self._by_elements(values, reflected)) is not None:
                return made
            if values.ndim == 3 and not self._batch:
                raise ShapeError(
                    f"a plain batch of shape {values.shape} is multiplied by an encrypted batch; take its "
                    "members one by one"
                )
            dropped = MATRIX if values.ndim > 1 else ROW if reflected else COLUMN
            rows = values if values.ndim > 1 else values.reshape((1, -1) if reflected else (-1, 1))
            right = self._wrap(self._place.lift(rows), dropped)
        first, second = (right, self) if reflected else (self, right)
        if NUMBER in (first._dropped, second._dropped):
            raise ShapeError("a matrix product takes matrices; multiply by a number with *")
        if (first._dropped or second._dropped) and self._batch:
            raise ShapeError("in a batch, a vector is a matrix of one column or one row")
        left_core, right_core = first._turned(ROW), second._turned(COLUMN)
        # A plain matrix may be shared by the members of a batch.
        shared = 1 in (left_core.batch, right_core.batch) and not isinstance(other, type(self))
        if left_core.shape[1] != right_core.shape[0] or not (shared or left_core.batch == right_core.batch):
            raise shapes_differ("matrix product", first.shape, second.shape)
        kept = (ROW if first._dropped else ()) + (COLUMN if second._dropped else ())
        return self._wrap(self._place.apply({"op": "matmul"}, left_core, right_core), kept)

    def _by_elements(self: Self, values: Floats, reflected: bool) -> Self | None:
        """A matrix times a plain vector as products of each element and their sums, where that is planned.

        Their sums take a rotation for each power of two, where a matrix product takes one for each element.
        """
        length, axis = values.size, -2 if reflected else -1
        column = values.shape == ((1, length) if reflected else (length, 1))
        if not (values.ndim == 1 or column) or len(self._members) != 2 or self.shape[axis] != length:
            return None
        if not self._place.by_elements(length):
            return None
        factors = values.reshape((-1, 1) if reflected else -1)
        return cast("Self", (self * factors).sum(axis, keepdims=column))

    def _elementwise(self: Self, operation: str, other: Any, *, reflected: bool = False) -> Self:
        if isinstance(other, type(self)):
            self = self._adopt(other)
            shape, dropped = _common(operation, self, other)
            left, right = self._spread(shape, dropped), other._spread(shape, dropped)
        else:
            number = scalar(other)
            if number is not None:
                return self._with_number(operation, number, reflected)
            if empty(other):
                return cast("Self", _of_empty(getattr(np, operation), self, other, reflected))
            values = plain(other)
            # What all members of a batch share is one matrix.
            each = self._batch if values.ndim == self.ndim else ()
            shape = broadcast_shape(operation, self.shape, values.shape)[len(self._batch) :]
            if len(shape) > 2 or (self._batch and values.ndim > self.ndim):
                raise ShapeError(
                    f"{operation}: a matrix has two axes, and the shape {values.shape} would give it more"
                )
            dropped = self._dropped if len(shape) == len(self._members) else (MATRIX, ROW)[len(shape) == 1]
            left = self._spread(shape, dropped)
            values = np.broadcast_to(values, each + shape).reshape(each + tuple(left.shape))
            right = self._place.lift(np.ascontiguousarray(values))
        first, second = (right, left) if reflected else (left, right)
        return self._wrap(self._place.apply({"op": NAMES[operation]}, first, second), dropped)

    def _spread(self, shape: Shape, dropped: Shape) -> Core:
        """The operand at the shape that NumPy broadcasts it to."""
        # A vector that meets a matrix is a row.
        core = self._turned(ROW if dropped == MATRIX and self._dropped != NUMBER else dropped)
        sides = shape if dropped == MATRIX else (1, 1) if dropped == NUMBER else (1, *shape)
        sides = sides[::-1] if dropped == COLUMN else sides
        for axis, side in enumerate(sides):
            if core.shape[axis] != side:
                core = self._place.apply({"op": "repeat", "axis": axis, "size": side}, core)
        return core

    def _with_number(self: Self, operation: str, number: float, reflected: bool) -> Self:
        if operation == "multiply":
            return self._scale(number)
        if operation == "subtract" and reflected:
            return self._apply({"op": "neg"})._shift(number)
        return self._shift(-number if operation == "subtract" else number)


def _by(product: bool, operation: str) -> Callable[[Any, Any], Any]:
    """The operation, done by whichever operand is ours."""

    def apply(left: Any, right: Any) -> Any:
        ours, other, reflected = (
            (left, right, False) if isinstance(left, Operators) else (cast(ArrayOperators, right), left, True)
        )
        if product:
            return ours._product(other, reflected=reflected)
        return ours._elementwise(operation, other, reflected=reflected)

    return apply


def _divide(a: Any, b: Any) -> Any:
    if isinstance(b, ArrayOperators):
        reciprocal = remedy("reciprocal", [b])
        written = f"x * {reciprocal.replace('(x', '(y')}" if isinstance(a, ArrayOperators) else reciprocal
        raise UnsupportedError(
            f"division is an approximation; say which interval the divisor is in: {written}"
            + ("" if isinstance(a, ArrayOperators) else ", times what is divided")
        )
    divisor = scalar(b)
    values = plain(b) if divisor is None else np.asarray(divisor)
    if not values.all():
        raise ZeroDivisionError("an encrypted matrix is not divided by zero; take another divisor")
    return a * (1 / values) if divisor is None else a._scale(1 / divisor)


def _raise(x: Any, exponent: Any) -> Any:
    if not isinstance(x, ArrayOperators):
        raise UnsupportedError(
            "an encrypted exponent is an approximation: "
            + written("x.apply(lambda t: 2**t, ({low}, {high}), degree=7)", [exponent])
        )
    wanted = scalar(exponent)
    if wanted == 0:
        return np.ones(x.shape)
    if wanted is None or not wanted.is_integer() or wanted < 1:
        raise UnsupportedError(
            "powers are 0, 1, 2, 3 and so on; others are approximations: "
            + written("x.apply(lambda t: t**0.5, ({tenth}, {high}), degree=7)", [x])
        )
    if wanted > MOST_POWER:
        raise UnsupportedError(f"powers go up to {MOST_POWER}, not {wanted:g}: errors grow with the exponent")
    return _power(x, int(wanted), {})


def _dot(a: Any, b: Any) -> Any:
    number = scalar(a) is not None or scalar(b) is not None
    return UFUNCS["multiply"](a, b) if number else shared.dot(a, b)


def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Elements of either, by a plain mask: products with zeros and ones."""
    if isinstance(condition, ArrayOperators) or x is None or y is None:
        raise unsupported("where", [condition])
    mask = array(condition).astype(bool)
    shape = broadcast_shape("where", broadcast_shape("where", mask.shape, np.shape(x)), np.shape(y))
    terms = []
    for values, here in ((x, mask), (y, ~mask)):
        if isinstance(values, ArrayOperators):
            terms.append(values * np.broadcast_to(here, np.broadcast_shapes(here.shape, values.shape)))
        elif (known := np.where(here, values, 0)).any():
            terms.append(known)
    total = functools.reduce(operator.add, terms)
    return total if total.shape == shape else np.broadcast_to(total, shape)


def concatenate(arrays: Sequence[Any], axis: Any = 0) -> Any:
    """NumPy's concatenation."""
    parts = list(arrays)
    if axis is None:
        parts, axis = [flattened(a) for a in parts], 0
    ours = next(a for a in parts if isinstance(a, ArrayOperators))
    if ours.ndim == 0:
        raise ShapeError("numbers are not concatenated; stack them: numpy.stack([x, y])")
    if ours._batch:
        raise ShapeError("batches are not concatenated; concatenate their members before encryption")
    (at,) = ours._core_axes(axis)
    parts = [part for part in parts if not empty(part)]
    if len(parts) == 1:
        return parts[0]
    for part in parts:
        ours = ours._adopt(part)
    cores: list[Core | Floats] = []
    for part in parts:
        shape = part.shape if isinstance(part, ArrayOperators) else plain(part).shape
        if len(shape) != ours.ndim:
            raise shapes_differ("concatenation", ours.shape, shape)
        if isinstance(part, ArrayOperators):
            core = part._turned(ours._dropped)
        else:
            values = plain(part)
            core = np.expand_dims(values, ours._dropped) if ours._dropped else values
        if core.shape[1 - at] != ours._core.shape[1 - at]:
            raise shapes_differ(f"concatenation along axis {axis}", ours.shape, shape)
        cores.append(core)
    return ours._wrap(concatenated(ours._place, cores, at), ours._dropped)


def concatenated(place: Place, cores: Sequence[Core | Floats], axis: int) -> Core:
    """Operands one below the other (axis 0) or side by side (axis 1), each moved to its place; all are added.

    Plain ones are put together first and added last.
    """

    def total(x: Core, y: Core) -> Core:
        return y if x is None else x if y is None else place.apply({"op": "add"}, x, y)

    size, at = sum(c.shape[axis] for c in cores), 0
    out: Core = None
    known: Core = None
    beside = np.zeros((size, cores[0].shape[1]) if axis == 0 else (cores[0].shape[0], size))
    for core in cores:
        length = core.shape[axis]
        if isinstance(core, np.ndarray):
            beside[(slice(None),) * axis + (slice(at, at + length),)] = core
        else:
            lines = Lines(0, 1, length, at, 1, size)
            moved = place.apply(taken(axis, lines), core) if length != size else core
            if is_plain(core):
                known = total(known, moved)
            else:
                out = total(out, moved)
        at += length
    if beside.any():
        known = total(known, place.lift(beside))
    return total(out, known)


def is_plain(core: Core) -> bool:
    """Whether a plan has the operand as one that the server sees."""
    return getattr(core, "known", None) is not None


#: The largest exponent of a power: 20 products deep.
MOST_POWER = 1 << 20


def _power(x: Self, exponent: int, known: dict[int, Self]) -> Self:
    """A power by squares, as flat as can be; each power that is on the way is computed once."""
    if exponent == 1:
        return x
    if exponent not in known:
        half = _power(x, exponent // 2, known)
        known[exponent] = half * (half if exponent % 2 == 0 else _power(x, exponent - exponent // 2, known))
    return known[exponent]


def _common(operation: str, x: ArrayOperators, y: ArrayOperators) -> tuple[Shape, Shape]:
    """The shape that two operands have in common, and the axes of it that NumPy would not show."""
    if x._batch != y._batch:
        raise shapes_differ(operation, x.shape, y.shape)
    shape = broadcast_shape(operation, x._members, y._members)
    if len(shape) == 1:
        # A plain one is turned: where it comes as an array, it has no place of its own.
        vectors = sorted((v for v in (x, y) if len(v._members) == 1), key=lambda v: is_plain(v._core))
        return shape, vectors[0]._dropped
    return shape, NUMBER if not shape else MATRIX


def broadcast_shape(operation: str, left: Shape, right: Shape) -> Shape:
    """The shape of NumPy's broadcasting."""
    try:
        return np.broadcast_shapes(left, right)
    except ValueError:
        raise shapes_differ(operation, left, right) from None


def _picked(x: Any, key: tuple[Any, ...]) -> Any:
    """What an index picks: first the lines of a list or mask, if there is one."""
    lists = [
        n for n, entry in enumerate(key) if isinstance(entry, (list, np.ndarray)) and np.ndim(entry) == 1
    ]
    if len(lists) != 1 or any(entry is None for entry in key):
        return _indexed(x, key)
    n = lists[0]
    after_dots = any(entry is Ellipsis for entry in key[:n])
    at = x.ndim - len(key) + n if after_dots else n
    if not 0 <= at < x.ndim or (x._batch and at == 0):
        return _indexed(x, key)
    try:
        order = np.arange(x.shape[at])[key[n]]
    except IndexError as error:
        raise ShapeError(str(error)) from None
    return x._lines(at, order)[(*key[:n], slice(None), *key[n + 1 :])]


def _indexed(x: Any, key: tuple[Any, ...]) -> Any:
    """What an index of slices, numbers and new axes picks."""
    if x._batch:
        if not key or not (key[0] is Ellipsis or (isinstance(key[0], slice) and key[0] == slice(None))):
            raise ShapeError(WHOLE_BATCH)
        key = key[1:] if key[0] is not Ellipsis else key
    used = sum(entry is not None and entry is not Ellipsis for entry in key)
    if not all(_plain_index(k) for k in key) or sum(k is Ellipsis for k in key) > 1:
        raise UnsupportedError(
            "encrypted matrices are indexed by numbers, slices, ..., None and a plain list or mask of lines; "
            "rows and columns are taken one after the other, x[rows][:, columns], and elements are kept by "
            "numpy.where(mask, x, 0)"
        )
    if used > len(x._members):
        raise ShapeError(f"shape {x.shape} has no {used} axes to index")
    missing = (slice(None),) * (len(x._members) - used)
    at = next((n for n, entry in enumerate(key) if entry is Ellipsis), len(key))
    key = (*key[:at], *missing, *key[at + 1 :])
    axes = iter([axis for axis in (0, 1) if axis not in x._dropped])
    core = x._core
    shown: list[int | None] = []
    for entry in key:
        if entry is None:
            shown.append(None)
            continue
        axis = next(axes)
        length = core.shape[axis]
        if isinstance(entry, slice):
            found = range(length)[entry]
            if not found:
                return np.zeros(x.shape, x.dtype)[(slice(None),) * len(x._batch) + key]
            lines = Lines(found[0], found.step if len(found) > 1 else 1, len(found), 0, 1, len(found))
            shown.append(axis)
        else:
            number = operator.index(entry)
            if not -length <= number < length:
                raise ShapeError(f"index {number} is outside of an axis of length {length}")
            lines = Lines(number % length, 1, 1, 0, 1, 1)
        if lines != Lines(0, 1, length, 0, 1, length):
            core = x._place.apply(taken(axis, lines), core)
    return _laid(x, core, shown)


def _plain_index(entry: Any) -> bool:
    """Whether it is a number, a slice, `...` or `None`."""
    whole = isinstance(entry, (int, np.integer)) and not isinstance(entry, (bool, np.bool_))
    return entry is None or entry is Ellipsis or isinstance(entry, slice) or whole


def _laid(x: Self, core: Core, shown: list[int | None]) -> Self:
    """The axes of rows and columns that are shown, in their order, and new ones of length 1 between them."""
    if len(shown) > 2:
        raise ShapeError(f"a matrix has two axes, not {len(shown)}; leave one out")
    kept = [axis for axis in shown if axis is not None]
    if len(shown) < 2:
        return x._wrap(core, NUMBER if not shown else COLUMN if kept == [0] else ROW)
    turn = len(kept) == 1 and shown.index(kept[0]) != kept[0]
    return x._wrap(x._place.apply({"op": "transpose"}, core) if turn else core, MATRIX)


def _reshaped(x: Self, shape: Shape) -> Self:
    """The same elements in rows of another length."""
    if x._batch:
        raise ShapeError(
            "the members of a batch keep their shape; reshape before encryption or after decryption"
        )
    sides = [operator.index(side) for side in shape]
    if sides.count(-1) == 1:
        rest = math.prod(side for side in sides if side != -1)
        sides = [x.size // rest if side == -1 and rest > 0 else side for side in sides]
    if len(sides) > 2 or min(sides, default=1) < 1 or math.prod(sides) != x.size:
        raise ShapeError(
            f"shape {x.shape} does not become {shape}: rows and columns, or a length, of as many elements"
        )
    if len(sides) < 2:
        # A vector stays as it lies.
        if not sides or x.ndim == 1:
            return x._wrap(x._core, x._dropped if sides else NUMBER)
        return x._wrap(_moved(x._place, x._core, (1, sides[0])), ROW)
    if sides[1] == 1 and 1 in x._core.shape:
        return x._wrap(x._core, MATRIX) if x._core.shape[1] == 1 else x._apply({"op": "transpose"}, MATRIX)
    return x._wrap(_moved(x._place, x._turned(ROW), (sides[0], sides[1])), MATRIX)


def _moved(place: Place, core: Core, sides: tuple[int, int]) -> Core:
    """Rows of another length: cut, or put one after the other, whichever divides the other's length."""
    (rows, cols), (down, across), out = core.shape, sides, None
    if (rows, cols) == sides:
        return core
    if cols == 1 and down == 1:
        return place.apply({"op": "transpose"}, core)
    if across % cols and cols % across:
        return _moved(place, _moved(place, core, (1, rows * cols)), sides)
    for c in range(max(across // cols, cols // across)):
        part = core
        if across % cols == 0:
            k = across // cols
            if k > 1 or rows > 1:
                part = place.apply(taken(0, Lines(c, k if down > 1 else 1, down, 0, 1, down)), part)
            part = place.apply(taken(1, Lines(0, 1, cols, c * cols, 1, across)), part)
        else:
            part = place.apply(taken(1, Lines(c * across, 1, across, 0, 1, across)), part)
            part = place.apply(taken(0, Lines(0, 1, rows, c, cols // across, down)), part)
        out = part if out is None else place.apply({"op": "add"}, out, part)
    return out


#: Slices that a matrix is put together of; more are a product.
MOST_PIECES = 8


def progressions(order: list[int]) -> list[slice]:
    """Slices that pick lines in an order; those that leave lines out have three or more."""
    found, at = list[slice](), 0
    while at < len(order):
        step, end = order[at + 1] - order[at] if at + 1 < len(order) else 1, at + 1
        while step and end < len(order) and order[end] - order[end - 1] == step:
            end += 1
        if abs(step) != 1 and end - at < 3:
            step, end = 1, at + 1
        stop = order[end - 1] + (1 if step > 0 else -1)
        found.append(slice(order[at], stop if stop >= 0 else None, step))
        at = end
    return found


def _assigned(x: Self, key: Any, value: Any) -> Self:
    """A matrix with other elements in some places."""
    if x._batch or any(isinstance(k, Opaque) for k in (key if isinstance(key, tuple) else (key,))):
        raise UnsupportedError(
            "elements are replaced by a plain index, in a matrix and not in a batch; write "
            "numpy.where(mask, value, x) with a plain mask"
        )
    places = np.arange(x.size).reshape(x.shape)
    try:
        chosen = np.asarray(places[key])
        np.broadcast_to(np.empty(np.shape(value)), chosen.shape)
    except (IndexError, ValueError) as error:
        raise ShapeError(str(error)) from None
    if not chosen.size:
        return x
    kept = ~np.isin(places, chosen)
    if not isinstance(value, ArrayOperators):
        new = np.zeros(x.shape)
        new[key] = value if scalar(value) is not None else plain(value)
        return cast("Self", x * kept + new)
    sides = [np.unique(axis) for axis in np.unravel_index(chosen.ravel(), x.shape)] if x.ndim else []
    block = places[tuple(slice(side[0], side[-1] + 1) for side in sides)] if sides else places
    if not np.array_equal(block.ravel(), chosen.ravel()):
        raise UnsupportedError(
            "encrypted values replace neighbouring rows and columns, x[1:3, :2] = y; for others write "
            "numpy.where(mask, y, x), with a plain mask and y of the shape of x"
        )
    spread: Any = np.broadcast_to(cast("Any", value), chosen.shape).reshape(block.shape)
    around = [(side[0], n - 1 - side[-1]) for side, n in zip(sides, x.shape, strict=True)]
    spread = np.pad(spread, around) if any(map(any, around)) else spread
    if kept.any():
        return cast("Self", x * kept + spread)
    return x._wrap(spread._turned(x._dropped), x._dropped)


def _along_diagonal(x: ArrayOperators, offset: int, axis1: int, axis2: int) -> NDArray[np.bool_]:
    """Where a diagonal of a matrix is."""
    found, (rows, cols) = len(x._batch), x._members
    if {shared.axis_of(x, axis1) - found, shared.axis_of(x, axis2) - found} != {0, 1}:
        own = "; those of a batch's members are axis1=-2, axis2=-1" if found else ""
        raise ShapeError(f"a diagonal is in the plane of rows and columns, not of {axis1} and {axis2}{own}")
    at = offset if axis1 % x.ndim < axis2 % x.ndim else -offset
    if not -rows < at < cols:
        raise ShapeError(f"a matrix of shape {x._members} has no diagonal {offset}")
    return np.eye(rows, cols, at, dtype=bool)


def _broadcast_to(array: ArrayOperators, shape: Any) -> Any:
    wanted = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if array._batch or broadcast_shape("broadcast_to", array.shape, wanted) != wanted or len(wanted) > 2:
        raise shapes_differ("broadcast_to", array.shape, wanted)
    dropped = array._dropped if len(wanted) == array.ndim else (NUMBER, ROW, MATRIX)[len(wanted)]
    return array._wrap(array._spread(wanted, dropped), dropped)


def empty(x: Any) -> bool:
    """Whether it is a plain array without elements."""
    return isinstance(x, np.ndarray) and x.size == 0


def _of_empty(function: Callable[..., Any], x: ArrayOperators, other: Any, reflected: bool) -> Any:
    """An operation with an array without elements, whose result has none that would be secret."""
    operands = (other, np.zeros(x.shape)) if reflected else (np.zeros(x.shape), other)
    try:
        return function(*operands)
    except ValueError:
        raise shapes_differ(function.__name__, *(y.shape for y in operands)) from None


UFUNCS: dict[str, Callable[..., Any]] = {
    "matmul": _by(True, "matmul"),
    "add": _by(False, "add"),
    "subtract": _by(False, "subtract"),
    "multiply": _by(False, "multiply"),
    "divide": _divide,
    "power": _raise,
    "negative": lambda x: x._apply({"op": "neg"}),
    "square": lambda x: x * x,
    "float_power": _raise,
    **shared.UFUNCS,
}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **shared.FUNCTIONS,
    "dot": _dot,
    "sum": lambda a, axis=None, dtype=None, keepdims=False: a.sum(axis, keepdims=keepdims, dtype=dtype),
    "mean": lambda a, axis=None, dtype=None, keepdims=False: a.mean(axis, keepdims=keepdims, dtype=dtype),
    "var": lambda a, axis=None, dtype=None, ddof=0, keepdims=False: a.var(axis, ddof=ddof, keepdims=keepdims),
    "concatenate": concatenate,
    "where": _where,
    "broadcast_to": _broadcast_to,
    "trapezoid": shared.trapezoid,
    "polyval": lambda p, x: powers(x, [float(c) for c in plain(p)[::-1]]),
}


@functools.cache
def _namespace() -> Namespace:
    return Namespace({*UFUNCS, *FUNCTIONS}, unsupported)


def _refuse(name: str, others: dict[str, Any]) -> None:
    """Refuses keyword arguments that were set."""
    for key, value in others.items():
        if value is not None and value is not shared.NOT_GIVEN:
            raise UnsupportedError(f"numpy.{name} has no {key}= for encrypted matrices")


def shapes_differ(operation: str, left: Shape, right: Shape) -> ShapeError:
    """The refusal of an operation with both shapes."""
    return ShapeError(f"{operation}: shapes {left} and {right} do not go together")


def scalar(value: Any) -> float | None:
    """A real number, or `None` if it is something else."""
    if type(value) in (int, float) and -LARGEST <= value <= LARGEST:
        # What programs are full of, without a question to NumPy.
        return float(value)
    if isinstance(value, (int, float, np.number)) or (isinstance(value, np.ndarray) and value.ndim == 0):
        if np.iscomplexobj(value):
            raise UnsupportedError(
                "encrypted matrices are real; give real and imaginary parts as two matrices"
            )
        number = math.inf if isinstance(value, int) and abs(value) > LARGEST else float(value)
        if not np.isfinite(number):
            raise InputError(f"{number} is not a finite number; replace it")
        return number
    return None


def plain(values: Any) -> Floats:
    """Anything that NumPy takes for a real matrix or vector, as a C-ordered array of doubles."""
    found = array(values)
    if found.dtype.kind not in "biuf":
        texts = "; sudare.bits has encrypt_text(x, length=8)" if found.dtype.kind in "UST" else ""
        raise UnsupportedError(f"real numbers are needed, not an array of {found.dtype}{texts}")
    if found.ndim not in (1, 2, 3) or found.size == 0:
        raise ShapeError(f"a matrix or vector with elements is needed, not an array of shape {found.shape}")
    return np.ascontiguousarray(found, dtype=np.float64)
