"""What is known about a matrix before it is encrypted."""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, replace
from typing import Any, Literal, SupportsIndex

import numpy as np

from ._errors import InputError, ShapeError
from ._frames import is_frame, is_series
from ._values import array, real

__all__ = ["Spec", "spec"]


#: The largest bound of an input.
LARGEST = 1e15


@dataclass(frozen=True)
class Spec:
    """Shape and bound of a matrix or vector; all that a plan may know about it."""

    shape: tuple[Any, ...]
    """Rows and columns, or the length of a vector; None for any number of rows."""
    max_abs: float = 1.0
    """Bound on the absolute values of the elements."""
    plain: bool = False
    """Whether the server sees this matrix. Otherwise it arrives encrypted."""
    integer: bool = False
    """Whether its elements are integers, computed with exactly."""

    def __post_init__(self) -> None:
        given = self.shape[1:] if self.any_rows else self.shape
        if len(self.shape) not in (1, 2) or any(side is None or side < 1 for side in given):
            # Of many numbers somebody means data, which no message shows.
            found = self.shape if len(self.shape) <= 3 else f"{len(self.shape)} numbers"
            raise ShapeError(
                f"a shape is rows and columns, or a length, each at least 1, not {found}; "
                "None is any number of rows: (None, 30)"
            )
        if self.any_rows and self.plain:
            raise ShapeError("a plain input has a known number of rows; give it, or encrypt the input")
        bound = real(self.max_abs, "max_abs")
        if not (math.isfinite(bound) and bound > 0):
            raise InputError(f"max_abs is a finite number above zero, not {self.max_abs!r}")
        if bound > LARGEST and not self.integer:
            raise InputError(
                f"bounds of real numbers go up to {LARGEST:g}, not {bound:g}; scale them, X / {bound:g}"
            )

    @property
    def any_rows(self) -> bool:
        """Whether it has any number of rows."""
        return bool(self.shape) and self.shape[0] is None

    def of_rows(self, rows: int) -> Spec:
        """The same with a number of rows, where it has any."""
        return replace(self, shape=(rows, *self.shape[1:])) if self.any_rows else self


def spec(
    shape: Any,
    *,
    max_abs: float | Literal["data"] = 1.0,
    plain: bool = False,
    dtype: Any = float,
) -> Spec:
    """Describe a matrix or vector to `plan`.

    `shape` is what NumPy calls shape, `max_abs` a bound on the absolute values (1): the tighter, the
    cheaper. `(None, 30)` is any number of rows of 30 elements, for a function that computes each by itself:
    see `plan`. In place of a shape, an array, frame or series gives its own, and with `max_abs="data"` its
    bound, which everybody who has the plan then knows. A `plain` matrix is known to the server, which
    computes with it as it is. With an integer `dtype` the product is exact.

    Raises `ShapeError` for anything but one or two sides of at least 1, `InputError` for a bound that is not
    finite and above zero or under elements that are given, or another dtype.

    >>> spec((512, 512), max_abs=1)
    Spec(shape=(512, 512), max_abs=1.0, plain=False, integer=False)
    >>> spec((16, 16), max_abs=1023, dtype=int)
    Spec(shape=(16, 16), max_abs=1023, plain=False, integer=True)
    """
    if np.ndim(max_abs):
        raise InputError(
            "max_abs is one number for all columns; divide each column by its own bound, X / bounds, or take "
            "sudare.table, which has a bound for each"
        )
    if is_data(shape):
        shape, max_abs = _of_data(array(shape), max_abs)
    kind = np.dtype(dtype).kind
    if kind not in "fiu":
        raise InputError(f"a matrix holds real numbers or integers, not {np.dtype(dtype)}")
    if not isinstance(plain, (bool, np.bool_)):
        raise InputError(f"plain is True or False, not {plain!r}")
    try:
        given = (shape,) if shape is None or isinstance(shape, SupportsIndex) else tuple(shape)
        sides = tuple(side if side is None else operator.index(side) for side in given)
    except TypeError:
        raise ShapeError(f"a shape is rows and columns, or a length, not {type(shape).__name__}") from None
    integer, bound = kind != "f", real(max_abs, "max_abs")
    # Bounds of integers stay exact beyond 2^53.
    return Spec(sides, int(max_abs) if integer and bound.is_integer() else bound, bool(plain), integer)


def is_data(given: Any) -> bool:
    """Whether it is an array, and no shape."""
    rows = isinstance(given, list) and bool(given) and isinstance(given[0], (list, tuple, np.ndarray))
    return rows or is_frame(given) or is_series(given) or (isinstance(given, np.ndarray) and given.ndim > 0)


def _of_data(values: Any, max_abs: Any) -> tuple[Any, Any]:
    """Shape and bound of an array."""
    if values.dtype.kind not in "biuf" or not values.size:
        raise ShapeError(
            f"a matrix or vector of numbers is described, not {values.dtype} of shape {values.shape}"
        )
    largest = np.abs(values.astype(np.float64)).max()
    if max_abs == "data":
        return values.shape, float(largest) or 1.0
    if not largest <= real(max_abs, "max_abs"):
        raise InputError(
            f"elements are over max_abs={max_abs:g}; say what they are up to, sudare.spec(X, max_abs=…), or "
            "max_abs='data', which tells their largest to everybody who has the plan"
        )
    return values.shape, max_abs
