"""The operators and NumPy protocols that expressions and encrypted matrices share.

Nothing here computes. Shapes follow NumPy's rules; below, everything has rows and columns: a
vector is held as one row or one column, a number as a 1×1 matrix, and `dropped` says which of the
two axes NumPy would not show.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ._errors import InputError, ShapeError, UnsupportedError
from ._opaque import Opaque
from ._values import array, real

Floats: TypeAlias = NDArray[np.float64]
Shape: TypeAlias = tuple[int, ...]
Core: TypeAlias = Any
Self = TypeVar("Self", bound="ArrayOperators")

ROW, COLUMN, MATRIX, NUMBER = (0,), (1,), (), (0, 1)


class Operations(Protocol):
    """What has to be done for the operators, on operands that have rows and columns."""

    def matmul(self, left: Core, right: Core) -> Core:
        """The matrix product."""

    def elementwise(self, operation: str, left: Core, right: Core) -> Core:
        """`add`, `subtract` or `multiply` for equal shapes."""

    def negative(self, operand: Core) -> Core:
        """The negative."""

    def scale(self, operand: Core, factor: float) -> Core:
        """The multiple by a number."""

    def shift(self, operand: Core, number: float) -> Core:
        """A number added to every element."""

    def transpose(self, operand: Core) -> Core:
        """The transpose."""

    def sum(self, operand: Core, axis: int) -> Core:
        """The sum over an axis, which stays with length 1."""

    def bounded(self, operand: Core, max_abs: float) -> Core:
        """The same with a bound that the caller knows."""

    def lift(self, values: Floats) -> Core:
        """A plain matrix as an operand."""


class ArrayOperators(Opaque, ABC):
    """A matrix, vector or number that is computed with before anybody can see it."""

    _core: Core
    _dropped: Shape

    @property
    @abstractmethod
    def _do(self) -> Operations:
        """What computes."""

    @abstractmethod
    def _wrap(self: Self, core: Core, dropped: Shape) -> Self:
        """A result of the same kind."""

    def _adopt(self: Self, other: Any) -> Self:
        """The operand, able to compute if `other` is."""
        return self

    @property
    def _batch(self) -> Shape:
        """The batch axis, if there is one."""
        return (self._core.batch,) if self._core.batch > 1 else ()

    @property
    def shape(self) -> Shape:
        """The shape that decryption gives. A batch comes first."""
        return self._batch + tuple(n for axis, n in enumerate(self._core.shape) if axis not in self._dropped)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """What decryption gives."""
        return np.dtype(np.float64)

    @property
    def T(self: Self) -> Self:  # noqa: N802 (NumPy's name)
        """The transpose."""
        return self.transpose()

    def __len__(self) -> int:
        if not self.shape:
            raise UnsupportedError("a number has no length")
        return self.shape[0]

    def __matmul__(self: Self, other: Any) -> Self:
        return self._product(other)

    def __rmatmul__(self: Self, other: Any) -> Self:
        return self._product(other, reflected=True)

    def __add__(self: Self, other: Any) -> Self:
        return self._elementwise("add", other)

    def __radd__(self: Self, other: Any) -> Self:
        return self._elementwise("add", other, reflected=True)

    def __sub__(self: Self, other: Any) -> Self:
        return self._elementwise("subtract", other)

    def __rsub__(self: Self, other: Any) -> Self:
        return self._elementwise("subtract", other, reflected=True)

    def __mul__(self: Self, other: Any) -> Self:
        return self._elementwise("multiply", other)

    def __rmul__(self: Self, other: Any) -> Self:
        return self._elementwise("multiply", other, reflected=True)

    def __truediv__(self: Self, other: Any) -> Self:
        divisor = scalar(other)
        if divisor is None:
            raise UnsupportedError("an encrypted matrix is divided by plain numbers only")
        if divisor == 0:
            raise ZeroDivisionError("division of an encrypted matrix by zero")
        return self._scale(1 / divisor)

    def __rtruediv__(self, other: Any) -> NoReturn:
        raise UnsupportedError("nothing can be divided by an encrypted matrix")

    def __pow__(self: Self, exponent: Any) -> Self:
        if scalar(exponent) != 2:
            raise UnsupportedError("an encrypted matrix is squared by ** 2; write other powers as products")
        return self * self

    def __rpow__(self, base: Any) -> NoReturn:
        raise UnsupportedError("an encrypted matrix cannot be an exponent")

    def __neg__(self: Self) -> Self:
        return self._wrap(self._do.negative(self._core), self._dropped)

    def __pos__(self: Self) -> Self:
        return self

    def dot(self: Self, other: Any) -> Self:
        """The matrix product, as `@`; with a number, the multiple.

        Raises `ShapeError` for shapes that do not go together, `UnsupportedError` for complex
        numbers, `InputError` for infinite ones.
        """
        return self._product(other) if scalar(other) is None else self * other

    def transpose(self: Self, *axes: Any) -> Self:
        """The transpose; a vector stays as it is, as in NumPy.

        Raises `ShapeError` for another number of axes, or an order that moves the batch.
        """
        order = tuple(axes[0]) if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
        order = tuple(range(self.ndim))[::-1] if order in ((), (None,)) else order
        if not all(isinstance(a, int) for a in order) or sorted(a % max(self.ndim, 1) for a in order) != list(
            range(self.ndim)
        ):
            raise ShapeError(f"{order} is no order of the axes of shape {self.shape}")
        if self._batch and order[0] % self.ndim:
            raise ShapeError("the batch axis stays first; numpy.matrix_transpose turns each member")
        last = order[-2:]
        if self._dropped or last[0] % self.ndim < last[1] % self.ndim:
            return self
        return self._wrap(self._do.transpose(self._core), MATRIX)

    @property
    def mT(self: Self) -> Self:  # noqa: N802 (NumPy's name)
        """The transpose of each member of a batch; of a matrix, the transpose.

        Raises `ShapeError` for a vector.
        """
        if self._dropped:
            raise ShapeError("a matrix transpose takes matrices")
        return self._wrap(self._do.transpose(self._core), MATRIX)

    def sum(self: Self, axis: Any = None, *, keepdims: bool = False) -> Self:
        """The sum over an axis or over everything.

        Raises `ShapeError` for an axis that there is not, or a batch's.
        """
        over = self._core_axes(axis)
        core = self._core
        for at in over:
            core = self._do.sum(core, at)
        return self._wrap(core, self._dropped if keepdims else tuple(sorted({*self._dropped, *over})))

    def mean(self: Self, axis: Any = None, *, keepdims: bool = False) -> Self:
        """The mean over an axis or over everything.

        Raises `ShapeError` for an axis that there is not, or a batch's.
        """
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
        return self._wrap(self._do.bounded(self._core, real(max_abs, "max_abs")), self._dropped)

    # How shapes go together.

    def _scale(self: Self, factor: float) -> Self:
        return self._wrap(self._do.scale(self._core, factor), self._dropped)

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
        same = self._dropped == dropped or not self._dropped
        return self._core if same else self._do.transpose(self._core)

    def _product(self: Self, other: Any, *, reflected: bool = False) -> Self:
        if isinstance(other, type(self)):
            self, right = self._adopt(other), other
        elif scalar(other) is not None:
            raise ShapeError("a matrix product takes matrices; multiply by a number with *")
        else:
            values = plain(other)
            dropped = MATRIX if values.ndim > 1 else ROW if reflected else COLUMN
            rows = values if values.ndim > 1 else values.reshape((1, -1) if reflected else (-1, 1))
            right = self._wrap(self._do.lift(rows), dropped)
        first, second = (right, self) if reflected else (self, right)
        if NUMBER in (first._dropped, second._dropped):
            raise ShapeError("a matrix product takes matrices; multiply by a number with *")
        if (first._dropped or second._dropped) and self._batch:
            raise ShapeError("in a batch, a vector is a matrix of one column or one row")
        left_core = self._do.transpose(first._core) if first._dropped == COLUMN else first._core
        right_core = self._do.transpose(second._core) if second._dropped == ROW else second._core
        if left_core.shape[1] != right_core.shape[0] or left_core.batch != right_core.batch:
            raise shapes_differ("matrix product", first.shape, second.shape)
        kept = (ROW if first._dropped else ()) + (COLUMN if second._dropped else ())
        return self._wrap(self._do.matmul(left_core, right_core), kept)

    def _elementwise(self: Self, operation: str, other: Any, *, reflected: bool = False) -> Self:
        if isinstance(other, type(self)):
            if other.shape != self.shape:
                raise shapes_differ(operation, self.shape, other.shape)
            self = self._adopt(other)
            right = other._turned(self._dropped)
        else:
            number = scalar(other)
            if number is not None:
                return self._with_number(operation, number, reflected)
            values = broadcast(plain(other), self.shape, operation)
            right = self._do.lift(values.reshape(self._batch + tuple(self._core.shape)))
        first, second = (right, self._core) if reflected else (self._core, right)
        return self._wrap(self._do.elementwise(operation, first, second), self._dropped)

    def _with_number(self: Self, operation: str, number: float, reflected: bool) -> Self:
        if operation == "multiply":
            return self._scale(number)
        if operation == "subtract" and reflected:
            return self._wrap(self._do.shift((-self)._core, number), self._dropped)
        by = -number if operation == "subtract" else number
        return self._wrap(self._do.shift(self._core, by), self._dropped)

    # NumPy's protocols.

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Operators of NumPy in which one operand is encrypted."""
        if method == "reduce" and ufunc is np.add:
            _refuse("sum", {k: v for k, v in kwargs.items() if k not in ("axis", "keepdims")})
            return inputs[0].sum(kwargs.get("axis", 0), keepdims=kwargs.get("keepdims", False))
        handler = UFUNCS.get(ufunc.__name__) if method == "__call__" else None
        if handler is None:
            raise unsupported(ufunc.__name__)
        _refuse(ufunc.__name__, kwargs)
        return handler(*inputs)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Functions of NumPy in which one argument is encrypted."""
        handler = FUNCTIONS.get(func.__name__) if func.__module__ in ("numpy", "numpy.linalg") else None
        if handler is None:
            raise unsupported(func.__name__)
        return handler(*args, **kwargs)


def _by(product: bool, operation: str) -> Callable[[Any, Any], Any]:
    """The operation, done by whichever operand is ours."""

    def apply(left: Any, right: Any) -> Any:
        ours, other, reflected = (
            (left, right, False)
            if isinstance(left, ArrayOperators)
            else (cast(ArrayOperators, right), left, True)
        )
        if product:
            return ours._product(other, reflected=reflected)
        return ours._elementwise(operation, other, reflected=reflected)

    return apply


def _dot(a: Any, b: Any, **others: Any) -> Any:
    _refuse("dot", others)
    number = scalar(a) is not None or scalar(b) is not None
    return UFUNCS["multiply" if number else "matmul"](a, b)


def _sum(a: ArrayOperators, axis: Any = None, *, keepdims: Any = False, **others: Any) -> Any:
    _refuse("sum", others)
    return a.sum(axis, keepdims=keepdims is True)


def _mean(a: ArrayOperators, axis: Any = None, *, keepdims: Any = False, **others: Any) -> Any:
    _refuse("mean", others)
    return a.mean(axis, keepdims=keepdims is True)


def _concatenate(arrays: Sequence[Any], axis: Any = 0, **others: Any) -> Any:
    _refuse("concatenate", others)
    parts = list(arrays)
    ours = next(a for a in parts if isinstance(a, ArrayOperators))
    if axis is None or ours.ndim == 0:
        raise ShapeError("encrypted matrices are concatenated along an axis; they do not flatten")
    (at,) = ours._core_axes(axis)
    for part in parts:
        ours = ours._adopt(part)
    cores = []
    for part in parts:
        shape = part.shape if isinstance(part, ArrayOperators) else plain(part).shape
        if len(shape) != ours.ndim:
            raise shapes_differ("concatenation", ours.shape, shape)
        if isinstance(part, ArrayOperators):
            core = part._turned(ours._dropped)
        else:
            values = plain(part)
            core = ours._do.lift(np.expand_dims(values, ours._dropped) if ours._dropped else values)
        if core.shape[1 - at] != ours._core.shape[1 - at]:
            raise shapes_differ(f"concatenation along axis {axis}", ours.shape, shape)
        cores.append(core)
    return ours._wrap(concatenated(ours._do, cores, at), ours._dropped)


def concatenated(do: Operations, cores: list[Core], axis: int) -> Core:
    """Operands one below the other (axis 0) or side by side (axis 1).

    Each is moved to its place by a product with a plain matrix of zeros and ones, and all are
    added: the operations that every plan knows.
    """
    total, at, out = sum(c.shape[axis] for c in cores), 0, None
    for core in cores:
        length = core.shape[axis]
        move = np.eye(total, length, -at)
        moved = do.matmul(do.lift(move), core) if axis == 0 else do.matmul(core, do.lift(move.T.copy()))
        out = moved if out is None else do.elementwise("add", out, moved)
        at += length
    return out


UFUNCS: dict[str, Callable[..., Any]] = {
    "matmul": _by(True, "matmul"),
    "add": _by(False, "add"),
    "subtract": _by(False, "subtract"),
    "multiply": _by(False, "multiply"),
    "divide": lambda a, b: a / b if isinstance(a, ArrayOperators) else b.__rtruediv__(a),
    "power": lambda a, b: a**b if isinstance(a, ArrayOperators) else b.__rpow__(a),
    "negative": lambda x: -x,
    "positive": lambda x: x,
    "square": lambda x: x * x,
}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "dot": _dot,
    "sum": _sum,
    "mean": _mean,
    "transpose": lambda a, axes=None: a.transpose(axes),
    "matrix_transpose": lambda x: x.mT,
    "concatenate": _concatenate,
    "shape": lambda a: a.shape,
    "ndim": lambda a: a.ndim,
    "size": lambda a, axis=None: a.size if axis is None else a.shape[axis],
}


def _refuse(name: str, others: dict[str, Any]) -> None:
    """Refuses keyword arguments that were set."""
    no_value = getattr(np, "_NoValue", None)
    for key, value in others.items():
        if value is not None and value is not no_value:
            raise UnsupportedError(f"numpy.{name} has no {key}= for encrypted matrices")


def unsupported(name: str) -> UnsupportedError:
    """The refusal of a NumPy function by its name."""
    have = ", ".join(sorted({*UFUNCS, *FUNCTIONS} - {"shape", "ndim", "size"}))
    return UnsupportedError(f"numpy.{name} does not work on encrypted matrices; these do: {have}")


def shapes_differ(operation: str, left: Shape, right: Shape) -> ShapeError:
    """The refusal of an operation with both shapes."""
    return ShapeError(f"{operation}: shapes {left} and {right} do not go together")


def scalar(value: Any) -> float | None:
    """A real number, or `None` if it is something else."""
    if isinstance(value, (int, float, np.number)) or (isinstance(value, np.ndarray) and value.ndim == 0):
        if np.iscomplexobj(value):
            raise UnsupportedError("encrypted matrices are real; complex numbers are not taken")
        number = float(value)
        if not np.isfinite(number):
            raise InputError(f"{number} is not a finite number")
        return number
    return None


def plain(values: Any) -> Floats:
    """Anything that NumPy takes for a real matrix or vector, as a C-ordered array of doubles."""
    found = array(values)
    if found.dtype.kind not in "biuf":
        raise UnsupportedError(f"real numbers are wanted, not an array of {found.dtype}")
    if found.ndim not in (1, 2, 3) or found.size == 0:
        raise ShapeError(f"a matrix or vector with elements is wanted, not an array of shape {found.shape}")
    return np.ascontiguousarray(found, dtype=np.float64)


def broadcast(values: Floats, shape: Shape, operation: str) -> Floats:
    """A plain operand at the shape of the encrypted one, by NumPy's rules."""
    try:
        return np.ascontiguousarray(np.broadcast_to(values, shape))
    except ValueError:
        raise shapes_differ(operation, shape, values.shape) from None
