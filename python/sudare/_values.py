"""Plain values from outside: counts, numbers and arrays, taken for what they are or refused."""

from __future__ import annotations

import dataclasses
import numbers
import operator
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal

import numpy as np

# NumPy loads it when it is first named, under a lock that a process which forks then keeps shut.
from numpy.ma import MaskedArray
from numpy.typing import NDArray

from ._errors import InputError, ShapeError
from ._frames import is_frame, numbers_of
from ._opaque import Opaque

LARGEST = 2**63 - 1


def count(value: Any, name: str) -> int:
    """A whole number that is not negative."""
    try:
        found = operator.index(value)
    except TypeError:
        raise InputError(f"{name} is a whole number, not {value!r}") from None
    if not 0 <= found <= LARGEST:
        raise InputError(f"{name} is a whole number from 0 to {LARGEST}, not {value!r}")
    return found


def security_bits(value: int | Literal["insecure"]) -> int:
    """Bits of security as the extension takes them: 0 is none, which has to be asked for by its name."""
    if isinstance(value, str) and value == "insecure":
        return 0
    if isinstance(value, str) or value == 0:
        raise InputError(f"security is 128, 192 or 256 bits, or 'insecure' for none at all, not {value!r}")
    return count(value, "security")


def real(value: Any, name: str) -> float:
    """A real number; text that reads as one is none."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, bool) or not isinstance(value, (numbers.Real, Decimal)):
        raise InputError(f"{name} is a number, not {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise InputError(f"{name} is too large for a float; give a smaller number") from None


def each(function: Callable[[Any], Any], result: Any) -> Any:
    """A function of each part of a tuple, list, dictionary or dataclass, in another such; else of it."""
    if isinstance(result, dict):
        return {name: each(function, part) for name, part in result.items()}
    if isinstance(result, (tuple, list)):
        done = [each(function, part) for part in result]
        return type(result)(*done) if hasattr(result, "_fields") else type(result)(done)
    if dataclasses.is_dataclass(result) and not isinstance(result, (type, Opaque)):
        named = {f.name: getattr(result, f.name) for f in dataclasses.fields(result)}
        return dataclasses.replace(result, **each(function, named))
    return function(result)


def parts(result: Any) -> list[Any]:
    """The parts of a tuple, list, dictionary or dataclass, in their order; or the one value."""
    found: list[Any] = []
    each(found.append, result)
    return found


def array(values: Any) -> NDArray[Any]:
    """What NumPy makes of the values; what is masked is no value."""
    parts = values if isinstance(values, (list, tuple)) else (values,)
    if any(isinstance(part, MaskedArray) for part in parts):
        raise InputError(
            "a masked array has elements without a value; say what stands for them: x.filled(0), "
            "or leave them out: x.compressed()"
        )
    if is_frame(values):
        return numbers_of(values)
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ShapeError(f"this is not an array: {error}") from None
