"""What is known about a matrix before it is encrypted."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np

from ._errors import InputError, ShapeError
from ._values import real

__all__ = ["Spec", "spec"]


@dataclass(frozen=True)
class Spec:
    """Shape and bound of a matrix or vector; all that a plan may know about it."""

    shape: tuple[int, ...]
    """Rows and columns, or the length of a vector."""
    max_abs: float = 1.0
    """Bound on the absolute values of the elements."""
    plain: bool = False
    """Whether the server sees this matrix. Otherwise it arrives encrypted."""
    integer: bool = False
    """Whether its elements are integers, computed with exactly."""

    def __post_init__(self) -> None:
        if len(self.shape) not in (1, 2) or min(self.shape) < 1:
            raise ShapeError(f"a shape is rows and columns, or a length, each at least 1, not {self.shape}")
        bound = real(self.max_abs, "max_abs")
        if not (math.isfinite(bound) and bound > 0):
            raise InputError(f"max_abs is a finite number above zero, not {self.max_abs!r}")


def spec(
    shape: SupportsIndex | Iterable[SupportsIndex],
    *,
    max_abs: float = 1.0,
    plain: bool = False,
    dtype: Any = float,
) -> Spec:
    """Describe a matrix or vector to `plan`.

    `shape` is what NumPy calls shape, `max_abs` a bound on the absolute values: the tighter, the
    cheaper. A `plain` matrix is known to the server, which computes with it as it is. With an
    integer `dtype` the product is exact.

    Raises `ShapeError` for anything but one or two sides of at least 1, `InputError` for a bound that is not
    finite and above zero, or another dtype.

    >>> spec((512, 512), max_abs=1)
    Spec(shape=(512, 512), max_abs=1.0, plain=False, integer=False)
    >>> spec((16, 16), max_abs=1023, dtype=int)
    Spec(shape=(16, 16), max_abs=1023, plain=False, integer=True)
    """
    kind = np.dtype(dtype).kind
    if kind not in "fiu":
        raise InputError(f"a matrix holds real numbers or integers, not {np.dtype(dtype)}")
    if not isinstance(plain, (bool, np.bool_)):
        raise InputError(f"plain is True or False, not {plain!r}")
    try:
        sides = tuple(map(operator.index, (shape,) if isinstance(shape, SupportsIndex) else shape))
    except TypeError:
        raise ShapeError(f"a shape is rows and columns, or a length, not {shape!r}") from None
    integer, bound = kind != "f", real(max_abs, "max_abs")
    # Bounds of integers stay exact beyond 2^53.
    return Spec(sides, int(max_abs) if integer and bound.is_integer() else bound, bool(plain), integer)
