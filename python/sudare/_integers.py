"""Integers of any size: NumPy's in 64 bits, and Python's own."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._errors import InputError, ShapeError, UnsupportedError
from ._values import array

if TYPE_CHECKING:
    from ._core import _Integers

#: Doubles under this are the integers that they were made of.
DOUBLES = 2.0**53
#: Bits of an integer, its sign among them.
BITS = 128


def whole(values: Any) -> NDArray[Any]:
    """Anything that NumPy takes for integers, and Python's integers of any size, as an array of either."""
    found = array(values)
    if found.dtype.kind == "f" and isinstance(values, (list, tuple)):
        # Python's integers on both sides of 64 bits, which NumPy would make doubles.
        found = np.asarray(values, dtype=object)
    if found.dtype.kind == "O":
        found = _pythons(found)
    elif found.dtype.kind not in "biu":
        raise UnsupportedError(
            f"integers are needed, not an array of {found.dtype}, for nothing is rounded; round it and "
            "convert it: .astype(int)"
        )
    if found.ndim not in (1, 2, 3) or found.size == 0:
        raise ShapeError(f"a matrix or vector with elements is needed, not an array of shape {found.shape}")
    wide = found.dtype.kind == "O" or (found.dtype.kind == "u" and int(found.max()) > np.iinfo(np.int64).max)
    return np.ascontiguousarray(found, dtype=object if wide else np.int64)


def _pythons(found: NDArray[Any]) -> NDArray[Any]:
    out = np.empty(found.shape, dtype=object)
    for at, x in np.ndenumerate(found):
        try:
            out[at] = operator.index(x)
        except TypeError:
            raise UnsupportedError(
                f"the element at {at} is not an integer, and nothing is rounded; round it and convert it: "
                ".astype(int)"
            ) from None
    return out


def exactly(values: NDArray[Any]) -> NDArray[Any]:
    """Integers that came as doubles, if nothing can have been rounded; others as they are."""
    if values.dtype.kind != "f":
        return values
    wrong = np.argwhere((values != np.trunc(values)) | ~(np.abs(values) < DOUBLES))
    if len(wrong):
        at = tuple(int(i) for i in wrong[0])
        raise InputError(
            f"the plain matrix has no integer below 2^53 at {at}, and only such are computed with as they "
            "stand; make larger ones an input: sudare.spec(shape, max_abs=…, plain=True, dtype=int) and "
            "server.plain(x, name)"
        )
    return values.astype(np.int64)


def packed(values: NDArray[Any]) -> _Integers:
    """A batch of matrices as the extension takes it: 64-bit integers, or a list where one is larger."""
    try:
        return np.ascontiguousarray(values, dtype=np.int64)
    except OverflowError:
        pass
    elements = [int(x) for x in values.ravel()]
    if max(x.bit_length() for x in elements) >= BITS:
        raise InputError(
            f"an integer has {BITS} bits or more, and results of up to 117 bits are computed; scale it down"
        )
    batch, rows, cols = values.shape
    return (batch, rows, cols), elements
