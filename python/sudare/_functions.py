"""Functions of encrypted elements that are approximations, and of plain ones what NumPy has.

Each takes the interval that its elements lie in, and a `degree` or the `error` that may be made. The
polynomial is fitted on the caller's side; a plan tells interval and error, a bound, and has the latter
in its own error. Elements that may be over both ends of the interval are refused: plain ones and those of a
context by an `InputError`, those of a plan by a `PlanError`. In a context, whose bounds are powers of two, a
bound of less than twice the ends is taken, and the error that the result carries is that of elements as far
out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ._array import ArrayOperators
from ._errors import InputError
from ._polynomial import Interval, fitted, inside
from ._values import real

__all__ = ["bounded", "exp", "greater", "reciprocal", "sigmoid", "sign", "sqrt"]

X = TypeVar("X")


def bounded(x: X, max_abs: float) -> X:
    """The same values, of which you know that they are up to `max_abs`: see `Encrypted.bounded`.

    Plain ones are looked at. Raises `InputError` for a plain value over the bound.

    >>> bounded(np.array([0.5, -2]), max_abs=2)
    array([ 0.5, -2. ])
    """
    if isinstance(x, ArrayOperators):
        return x.bounded(max_abs)
    values, bound = np.asarray(x, dtype=np.float64), real(max_abs, "max_abs")
    over = np.argwhere(~(np.abs(values) <= bound))
    if len(over):
        # Values are nobody's business but the caller's, and messages travel: the position alone.
        raise InputError(f"the element at {tuple(over[0].tolist())} is over the bound {bound:g}")
    return x


def _elementwise(
    name: str,
    exact: Callable[[Any], Any],
    x: Any,
    interval: Interval,
    degree: int | None,
    error: float | None,
) -> Any:
    if not isinstance(x, ArrayOperators):
        inside(x, interval)
        return exact(np.asarray(x, dtype=np.float64))
    return x.apply(fitted(name, interval, degree, error))


def exp(x: Any, interval: Interval, degree: int | None = None, *, error: float | None = None) -> Any:
    """The exponential of elements that lie in `interval`.

    Raises `InputError` for an interval or a degree that is none and for elements outside,
    `UnsupportedError` for what is not real.
    """
    return _elementwise("exp", np.exp, x, interval, degree, error)


def sqrt(x: Any, interval: Interval, degree: int | None = None, *, error: float | None = None) -> Any:
    """The square root of elements that lie in `interval`, which begins above zero.

    Raises `InputError` for an interval or a degree that is none and for elements outside,
    `UnsupportedError` for what is not real.
    """
    _above_zero(interval)
    return _elementwise("sqrt", np.sqrt, x, interval, degree, error)


def reciprocal(x: Any, interval: Interval, degree: int | None = None, *, error: float | None = None) -> Any:
    """The reciprocal 1/x of elements that lie in `interval`, which begins above zero.

    Raises `InputError` for an interval or a degree that is none and for elements outside,
    `UnsupportedError` for what is not real.
    """
    _above_zero(interval)
    return _elementwise("reciprocal", np.reciprocal, x, interval, degree, error)


def sigmoid(x: Any, interval: Interval, degree: int | None = None, *, error: float | None = None) -> Any:
    """The logistic function 1 / (1 + exp(-x)) of elements that lie in `interval`.

    Raises `InputError` for an interval or a degree that is none and for elements outside,
    `UnsupportedError` for what is not real.
    """
    return _elementwise("sigmoid", _logistic, x, interval, degree, error)


def sign(x: Any, *, gap: float, max_abs: float, degree: int | None = None, error: float | None = None) -> Any:
    """The sign, -1 or 1, of elements from `gap` to `max_abs` in absolute value; anything for others.

    Raises `InputError` for a gap that is not between 0 and `max_abs`, a degree that is none and for
    elements over `max_abs`, `UnsupportedError` for what is not real.
    """
    return _elementwise("sign", np.sign, x, _both(gap, max_abs), degree, error)


def greater(
    x: Any, y: Any, *, gap: float, max_abs: float, degree: int | None = None, error: float | None = None
) -> Any:
    """Which is greater: 1 where x > y, 0 where x < y, for differences from `gap` to `max_abs`.

    For smaller differences anything between 0 and 1.

    Raises `InputError` for a gap that is not between 0 and `max_abs`, a degree that is none and for
    elements over `max_abs`, `UnsupportedError` for what is not real.
    """
    return _elementwise("step", lambda t: np.heaviside(t, 0.5), x - y, _both(gap, max_abs), degree, error)


def _logistic(t: Any) -> Any:
    """1 / (1 + exp(-t)), of which no exponential overflows."""
    return np.exp(-np.logaddexp(0, -t))


def _both(gap: float, max_abs: float) -> list[tuple[float, float]]:
    """Both sides of zero."""
    near, far = real(gap, "gap"), real(max_abs, "max_abs")
    if not 0 < near < far:
        raise InputError(f"a gap is between 0 and max_abs, not {near:g} of {far:g}")
    return [(-far, -near), (near, far)]


def _above_zero(interval: Interval) -> None:
    """Refuses an interval in which the function has no value."""
    if not np.min(interval) > 0:
        raise InputError(f"an interval above zero is wanted, (0.1, 1), not {interval!r}")
