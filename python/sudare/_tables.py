"""Operators on encrypted tables over whole ciphertexts, with NumPy's broadcasting.

A vector is held as a row or as a column, whichever its last operation gave: a sum over columns leaves a
column. It is turned only where an operation needs it the other way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._array import COLUMN, MATRIX, NAMES, NUMBER, ROW, Shape, plain, scalar, shapes_differ
from ._errors import ShapeError

if TYPE_CHECKING:
    from ._matrix import Encrypted


def rows(values: Any) -> tuple[Any, Shape]:
    """Values with rows and columns, a vector as a row: so it meets a table, as NumPy has it."""
    return (values.reshape(1, -1), ROW) if values.ndim == 1 else (values, MATRIX)


def elementwise(x: Encrypted, operation: str, other: Any, reflected: bool) -> Encrypted:
    """A sum, difference or product of operands whose shapes NumPy broadcasts."""
    number = scalar(other)
    if number is not None:
        return x._with_number(operation, number, reflected)
    y = other if isinstance(other, type(x)) else _lifted(x, operation, other)
    dropped: Shape
    try:
        shape = np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        raise shapes_differ(operation, x.shape, y.shape) from None
    if len(shape) == 2:
        x, y, dropped = _as_row(x), _as_row(y), MATRIX
    elif len(shape) == 1:
        vectors = {v._dropped for v in (x, y)} - {NUMBER}
        dropped = COLUMN if vectors == {COLUMN} else ROW
        x, y = (x, y) if dropped == COLUMN else (_as_row(x), _as_row(y))
    else:
        dropped = NUMBER
    first, second = (y, x) if reflected else (x, y)
    return x._wrap(x._place.apply({"op": NAMES[operation]}, first._core, second._core), dropped)


def product(x: Encrypted, other: Any, reflected: bool) -> Encrypted:
    """A table times a vector, a vector times a table, or two vectors."""
    if scalar(other) is not None:
        raise ShapeError("a matrix product takes matrices; multiply by a number with *")
    if isinstance(other, type(x)):
        y = other
    else:
        shaped, dropped = rows(plain(other))
        y = x._wrap(x._place.lift(shaped), dropped)
    left, right = (y, x) if reflected else (x, y)
    if 0 in (left.ndim, right.ndim):
        raise ShapeError("a matrix product takes matrices; multiply by a number with *")
    if left.shape[-1] != right.shape[0]:
        raise shapes_differ("matrix product", left.shape, right.shape)
    if left.ndim == right.ndim == 1:
        return elementwise(left, "multiply", right, False).sum()
    if right.ndim == 1:
        return elementwise(left, "multiply", right, False).sum(axis=1)
    if left.ndim == 1:
        column = left._wrap(left._turned(COLUMN), MATRIX)
        return elementwise(column, "multiply", right, False).sum(axis=0)
    return left._wrap(left._place.apply({"op": "matmul"}, left._core, right._core), MATRIX)


def _lifted(x: Encrypted, operation: str, other: Any) -> Encrypted:
    """A plain operand. In sums it covers the whole result, so that nothing stands beside it."""
    values = plain(other)
    if values.ndim > 2:
        raise ShapeError(f"tables are matrices and vectors, not arrays of shape {values.shape}")
    if operation != "multiply":
        try:
            values = np.broadcast_to(values, np.broadcast_shapes(values.shape, x.shape))
        except ValueError:
            raise shapes_differ(operation, x.shape, values.shape) from None
    if values.ndim == 1 and x._dropped == COLUMN:
        return x._wrap(x._place.lift(np.ascontiguousarray(values.reshape(-1, 1))), COLUMN)
    shaped, dropped = rows(values)
    return x._wrap(x._place.lift(np.ascontiguousarray(shaped)), dropped)


def _as_row(v: Encrypted) -> Encrypted:
    """A vector as a row."""
    return v._apply({"op": "transpose"}, ROW) if v._dropped == COLUMN else v
