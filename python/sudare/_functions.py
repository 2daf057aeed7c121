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
from typing import Any, TypeVar, overload

import numpy as np

from . import _bits_array, _moments
from ._array import ArrayOperators
from ._bits_array import EncryptedBits
from ._errors import InputError, ShapeError
from ._plan import Plan
from ._polynomial import Interval, Polynomial, fitted, inside, meets
from ._release import Release
from ._remedies import unsupported
from ._small_array import EncryptedSmall, small
from ._values import array, real

__all__ = [
    "bounded",
    "exp",
    "greater",
    "log",
    "maximum",
    "minimum",
    "reciprocal",
    "relu",
    "sigmoid",
    "sign",
    "sqrt",
    "table",
    "tanh",
    "where",
]

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
    if not meets("bounded", values) and len(over):
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
        inside(x, interval, "greater" if name == "step" else name)
        return exact(np.asarray(x, dtype=np.float64))
    return x.apply(fitted(name, interval, degree, error))


def exp(x: Any, interval: Interval, degree: int | None = None, *, error: float | None = None) -> Any:
    """The exponential of elements that lie in `interval`.

    Raises `InputError` for an interval or a degree that is none and for elements outside,
    `UnsupportedError` for what is not real.

    >>> ctx = sd.context(depth=1, tile=4, security="insecure")  # no security: quick to try
    >>> ctx.decrypt(sd.exp(ctx.encrypt([0.0, 1.0]), (-1, 1), degree=7)).round(2)
    array([1.  , 2.72])
    """
    return _elementwise("exp", np.exp, x, interval, degree, error)


def sqrt(x: Any, interval: Interval, degree: int | None = None, *, error: float | None = None) -> Any:
    """The square root of elements that lie in `interval`, which begins above zero.

    Raises `InputError` for an interval or a degree that is none and for elements outside,
    `UnsupportedError` for what is not real.

    >>> ctx = sd.context(depth=1, tile=4, security="insecure")  # no security: quick to try
    >>> ctx.decrypt(sd.sqrt(ctx.encrypt([1.0, 2.25]), (1, 3), degree=7)).round(2)
    array([1. , 1.5])
    """
    _above_zero(interval)
    return _elementwise("sqrt", np.sqrt, x, interval, degree, error)


def reciprocal(x: Any, interval: Interval, degree: int | None = None, *, error: float | None = None) -> Any:
    """The reciprocal 1/x of elements that lie in `interval`, which begins above zero.

    Raises `InputError` for an interval or a degree that is none and for elements outside,
    `UnsupportedError` for what is not real.

    >>> ctx = sd.context(depth=1, tile=4, security="insecure")  # no security: quick to try
    >>> ctx.decrypt(sd.reciprocal(ctx.encrypt([1.0, 2.5]), (1, 3), degree=7)).round(2)
    array([1. , 0.4])
    """
    _above_zero(interval)
    return _elementwise("reciprocal", np.reciprocal, x, interval, degree, error)


def sigmoid(x: Any, interval: Interval, degree: int | None = None, *, error: float | None = None) -> Any:
    """The logistic function 1 / (1 + exp(-x)) of elements that lie in `interval`.

    Raises `InputError` for an interval or a degree that is none and for elements outside,
    `UnsupportedError` for what is not real.

    >>> ctx = sd.context(depth=1, tile=4, security="insecure")  # no security: quick to try
    >>> ctx.decrypt(sd.sigmoid(ctx.encrypt([0.0, 1.0]), (-1, 1), degree=5)).round(2)
    array([0.5 , 0.73])
    """
    return _elementwise("sigmoid", _logistic, x, interval, degree, error)


def tanh(x: Any, interval: Interval, degree: int | None = None, *, error: float | None = None) -> Any:
    """The hyperbolic tangent of elements that lie in `interval`.

    Raises `InputError` for an interval or a degree that is none and for elements outside,
    `UnsupportedError` for what is not real.

    >>> ctx = sd.context(depth=1, tile=4, security="insecure")  # no security: quick to try
    >>> ctx.decrypt(sd.tanh(ctx.encrypt([0.5, 1.0]), (-1, 1), degree=7)).round(2)
    array([0.46, 0.76])
    """
    return _elementwise("tanh", np.tanh, x, interval, degree, error)


def log(x: Any, interval: Interval, degree: int | None = None, *, error: float | None = None) -> Any:
    """The natural logarithm of elements that lie in `interval`, which begins above zero.

    Raises `InputError` for an interval or a degree that is none and for elements outside,
    `UnsupportedError` for what is not real.

    >>> ctx = sd.context(depth=1, tile=4, security="insecure")  # no security: quick to try
    >>> ctx.decrypt(sd.log(ctx.encrypt([2.0, 2.5]), (1, 3), degree=7)).round(2)
    array([0.69, 0.92])
    """
    _above_zero(interval)
    return _elementwise("log", np.log, x, interval, degree, error)


def relu(x: Any, interval: Interval, degree: int | None = None, *, error: float | None = None) -> Any:
    """The larger of 0 and x, of elements that lie in `interval`: half of x and its absolute value.

    Raises `InputError` for an interval or a degree that is none and for elements outside,
    `UnsupportedError` for what is not real.

    A polynomial is never close to the corner: this one is up to 0.05 away.

    >>> ctx = sd.context(depth=2, tile=4, security="insecure")  # no security: quick to try
    >>> y = ctx.decrypt(sd.relu(ctx.encrypt([-1.0, 1.0]), (-1, 1), degree=7))
    >>> bool(np.abs(y - [0, 1]).max() < 0.06)
    True
    """
    if not isinstance(x, ArrayOperators):
        inside(x, interval, "relu")
        return np.maximum(np.asarray(x, dtype=np.float64), 0)
    return (x + x.apply(_absolute(interval, degree, error))) * 0.5


def _absolute(interval: Interval, degree: int | None, error: float | None) -> Polynomial:
    """The absolute value, of which half is taken: twice the error may be made."""
    return fitted("absolute", interval, degree, None if error is None else 2 * real(error, "error"))


def maximum(
    x: Any,
    y: Any,
    *,
    max_abs: float | None = None,
    degree: int | None = None,
    error: float | None = None,
) -> Any:
    """The larger of two elements; of encrypted integers exactly, one operand may be plain.

    Of encrypted real numbers it is y and the ReLU of x - y, whose absolute value is up to `max_abs`.

    Raises `UnsupportedError` for encrypted numbers without a bound, `InputError` for a bound or a degree that
    is none and for differences over the bound, `ShapeError` for shapes that do not go together.

    >>> ctx = sd.bits(parameters="insecure_test")  # no security: quick to try
    >>> ctx.decrypt(sd.maximum(ctx.encrypt(np.uint8([3, 9])), 5))
    array([5, 9], dtype=uint8)
    """
    if any(isinstance(v, EncryptedBits) for v in (x, y)):
        return _bits_array.maximum(x, y)
    if any(isinstance(v, EncryptedSmall) for v in (x, y)):
        return np.maximum(x, y)
    if not any(isinstance(v, ArrayOperators) for v in (x, y)):
        meets("maximum", np.subtract(x, y))
        return np.maximum(x, y)
    if max_abs is None or (degree is None and error is None):
        raise unsupported("maximum", [x, y])
    far = real(max_abs, "max_abs")
    return y + relu(x - y, (-far, far), degree, error=error)


def minimum(
    x: Any,
    y: Any,
    *,
    max_abs: float | None = None,
    degree: int | None = None,
    error: float | None = None,
) -> Any:
    """The smaller of two elements; see `maximum`.

    Raises `UnsupportedError` for encrypted numbers without a bound, `InputError` for a bound or a degree that
    is none and for differences over the bound, `ShapeError` for shapes that do not go together.

    >>> ctx = sd.bits(parameters="insecure_test")  # no security: quick to try
    >>> ctx.decrypt(sd.minimum(ctx.encrypt(np.uint8([3, 9])), 5))
    array([3, 5], dtype=uint8)
    """
    if any(isinstance(v, EncryptedBits) for v in (x, y)):
        return _bits_array.minimum(x, y)
    if any(isinstance(v, EncryptedSmall) for v in (x, y)):
        return np.minimum(x, y)
    if not any(isinstance(v, ArrayOperators) for v in (x, y)):
        meets("minimum", np.subtract(x, y))
        return np.minimum(x, y)
    if max_abs is None or (degree is None and error is None):
        raise unsupported("minimum", [x, y])
    far = real(max_abs, "max_abs")
    return y - relu(y - x, (-far, far), degree, error=error)


def where(condition: Any, x: Any, y: Any) -> Any:
    """Elements of `x` where the condition holds, of `y` elsewhere.

    Of integers of `bits` any of the three may be encrypted. The condition on encrypted real numbers is plain;
    one that compares them is an approximation, `greater`. Contexts of small integers have `table` in its
    place: `table(condition, [y, x])` of two numbers.

    Raises `ShapeError` for shapes that do not go together, `UnsupportedError` for a condition of encrypted
    real numbers, and for encrypted small integers.

    >>> ctx = sd.bits(parameters="insecure_test")  # no security: quick to try
    >>> age = ctx.encrypt(np.uint8([17, 42]))
    >>> ctx.decrypt(sd.where(age >= 18, 12, 5)).tolist()
    [5, 12]
    """
    if any(isinstance(v, EncryptedBits) for v in (condition, x, y)):
        return _bits_array.where(condition, x, y)
    return np.where(condition, x, y)


@overload
def table(shape: Any, *, max_abs: Any = 1.0, security: int = 128, release: Release | None = None) -> Plan: ...


@overload
def table(x: Any, f: Any, /, *, modulus: int | None = None) -> Any: ...


def table(
    shape: Any,
    f: Any = None,
    *,
    modulus: int | None = None,
    max_abs: Any = 1.0,
    security: int = 128,
    release: Release | None = None,
) -> Any:
    """A table of values, `table(x, f)`: f of each element of x, exactly, for any function f.

    `x` is an encrypted array of bits or small integers, of a context like `context(bootstrap="S15")` or of
    `bits`, whose booleans and integers of 8 and 16 bits have tables. `f` is a function of one number, or
    its values from 0 on: see `EncryptedSmall.lookup` and `EncryptedBits.lookup`. `modulus` is what small
    results are known modulo (x's without one). Of plain x the elements themselves are given to f. A tuple or
    list of functions of plain or small x gives a tuple of results.

    Raises `ShapeError` for another number of values, `InputError` for one that is no integer or out of
    range, for plain x that has no place among the values, and for settings of plans; `UnsupportedError` for
    arrays that have no tables, `PlanError` for a modulus that the set has no room for, `PrecisionError`
    where errors of x leave no room for the table.

    >>> ctx = sd.context(bootstrap="S15", security="insecure")  # no security: quick to try
    >>> x = ctx.encrypt([3, 5, 15])
    >>> ctx.decrypt(sd.table(x, lambda v: v * v % 7)).tolist()
    [2, 4, 1]

    With a shape in place of x it is the plan for a table of real numbers of which a server will find
    statistics without seeing a value, `table(shape)`, rows and columns, or `table(frame)`. `max_abs` bounds
    the absolute values, one number or one for each column; it is public, so choose it from what a column can
    be, not from the data. Errors are in proportion to it, for each column to its own: `Plan.errors` tells
    them beforehand, the means' in the first row and the covariances' under it. A `release` declares how many
    results will be shown to others.

    Raises `ShapeError` unless there are two sides, or for another number of bounds; `InputError` for a
    bound that is no number above zero; `PlanError` if no parameters hold such a table.

    >>> client = sd.Client(sd.table((5, 2), max_abs=[10, 1]))
    >>> server = client.server()
    >>> X = np.array([[1, 0.5], [2, 0.25], [3, 0.75], [4, 0.5], [5, 1.0]])
    >>> moments = client.decrypt(server.moments(client.encrypt(X)))
    >>> bool(np.allclose(moments.covariance, np.cov(X, rowvar=False), atol=1e-5))
    True
    """
    if f is None:
        if modulus is not None:
            raise InputError(
                "modulus= is for tables of encrypted small integers: sudare.table(x, f, modulus=…)"
            )
        return _moments.planned(shape, max_abs=max_abs, security=security, release=release)
    if np.ndim(max_abs) or (max_abs, security, release) != (1.0, 128, None):
        raise InputError(
            "max_abs=, security= and release= are for plans of real numbers: sudare.table(shape)"
        )
    if isinstance(shape, EncryptedSmall):
        return shape.lookup(f, modulus)
    if modulus is not None:
        raise InputError("modulus= is for encrypted small integers; reduce the values of f themselves")
    if isinstance(shape, EncryptedBits):
        return shape.lookup(f)
    if isinstance(shape, ArrayOperators):
        raise unsupported("table", [shape])
    if callable(f):
        values = array(shape)
        return np.asarray([f(v) for v in values.reshape(-1).tolist()]).reshape(values.shape)
    if isinstance(f, (tuple, list)) and f and all(map(callable, f)):
        return tuple(table(shape, each) for each in f)
    values, entries = small(shape), array(f)
    if entries.ndim != 1:
        raise ShapeError(f"a table is a list of values, not of shape {entries.shape}")
    wrong = np.argwhere((values < 0) | (values >= entries.size))
    if len(wrong):
        raise InputError(
            f"the element at {tuple(wrong[0].tolist())} is not from 0 to {entries.size - 1}, as the table "
            "is; reduce it, or give a longer table"
        )
    return entries[values.astype(np.intp)]


def sign(
    x: Any,
    *,
    gap: float | None = None,
    max_abs: float | None = None,
    degree: int | None = None,
    error: float | None = None,
) -> Any:
    """The sign, -1 or 1, of elements from `gap` to `max_abs` in absolute value; anything for others.

    Raises `InputError` for a gap that is not between 0 and `max_abs`, a degree that is none and for
    elements over `max_abs`, `UnsupportedError` for what is not real.

    >>> ctx = sd.context(depth=1, tile=4, security="insecure")  # no security: quick to try
    >>> y = ctx.decrypt(sd.sign(ctx.encrypt([-0.5, 1.0]), gap=0.4, max_abs=1, degree=7))
    >>> bool(np.abs(y - [-1, 1]).max() < 0.1)
    True
    """
    return _elementwise("sign", np.sign, x, _both(gap, max_abs), degree, error)


def greater(
    x: Any,
    y: Any,
    *,
    gap: float | None = None,
    max_abs: float | None = None,
    degree: int | None = None,
    error: float | None = None,
) -> Any:
    """Which is greater: 1 where x > y, 0 where x < y, for differences from `gap` to `max_abs`.

    For smaller differences anything between 0 and 1.

    Raises `InputError` for a gap that is not between 0 and `max_abs`, a degree that is none and for
    elements over `max_abs`, `UnsupportedError` for what is not real.

    >>> ctx = sd.context(depth=2, tile=4, security="insecure")  # no security: quick to try
    >>> x, y = ctx.encrypt([0.9, 0.1]), ctx.encrypt([0.2, 0.8])
    >>> found = ctx.decrypt(sd.greater(x, y, gap=0.5, max_abs=2, degree=15))
    >>> (found > 0.5).tolist()
    [True, False]
    """
    return _elementwise("step", lambda t: np.heaviside(t, 0.5), x - y, _both(gap, max_abs), degree, error)


def _logistic(t: Any) -> Any:
    """1 / (1 + exp(-t)), of which no exponential overflows."""
    return np.exp(-np.logaddexp(0, -t))


def _both(gap: float | None, max_abs: float | None) -> list[tuple[float, float]]:
    """Both sides of zero."""
    if gap is None or max_abs is None:
        raise InputError(
            "give the smallest size of numbers, or differences, that are not zero, and the largest: gap=0.1, "
            "max_abs=1"
        )
    near, far = real(gap, "gap"), real(max_abs, "max_abs")
    if not 0 < near < far:
        raise InputError(f"a gap is between 0 and max_abs, not {near:g} of {far:g}")
    return [(-far, -near), (near, far)]


def _above_zero(interval: Interval) -> None:
    """Refuses an interval in which the function has no value."""
    if not np.min(interval) > 0:
        raise InputError(f"the interval has to be above zero, (0.1, 1) for example, not {interval!r}")
