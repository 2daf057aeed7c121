"""Functions of encrypted numbers, by polynomials.

A plan has the sums and products in place of a polynomial that it is made of; a context has a circuit of its
own. How far a polynomial is from its function is found below: a bound for the functions of `KNOWN`, for
others an estimate.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Sequence
from contextvars import ContextVar
from typing import Any, TypeAlias, cast

import numpy as np
from numpy import polynomial as bases

from . import _core, _plot
from ._errors import InputError, UnsupportedError
from ._plot import Picture
from ._values import count, real

__all__ = ["Polynomial", "fit"]

DEGREES = (1, 2, 3, 5, 7, 11, 15, 23, 31, 47, 63)
# Functions whose distance from a polynomial is bounded, by what they are called below.
KNOWN: dict[Any, str] = {
    **{f: f.__name__ for f in (np.exp, np.tanh, np.sqrt, np.reciprocal, np.log, np.sin, np.cos, np.sign)},
    **{f: f.__name__ for f in (math.exp, math.tanh, math.sqrt, math.log, math.sin, math.cos)},
    **dict.fromkeys((np.absolute, abs, math.fabs), "absolute"),
}
# Part of an interval's end that bounds of rounded numbers may be over it.
ROUNDED = 8 * float(np.finfo(np.float64).eps)
Operand: TypeAlias = Any

Interval: TypeAlias = "tuple[float, float] | Sequence[tuple[float, float]]"


class Polynomial:
    """A polynomial on an interval that stands for a function there: `fit` makes it, `x.apply` evaluates it.

    Called with plain numbers or arrays in its interval it gives what encrypted ones would; others are
    refused by an `InputError`.

    >>> p = sd.fit(np.exp, (-1, 1), degree=7)
    >>> bool(abs(p(0.5) - np.exp(0.5)) <= p.error < 1e-6)
    True
    """

    def __init__(self, core: _core.Polynomial, function: Any, *, stated: bool = False) -> None:
        # A function, the name of one that is known below, or None where it is the polynomial itself.
        self._core, self._function, self._stated = core, function, stated

    def _operation(self, max_abs: float | None = None) -> dict[str, Any]:
        """The operation on elements; on those up to `max_abs` with the distance that it has there."""
        if not any(self.coefficients[1:]):
            raise InputError("a polynomial of degree 0 is a number: write that number")
        known = max_abs is None or self._stated
        core = self._core if known else self._core.up_to(cast("float", max_abs), self._function)
        return cast("dict[str, Any]", json.loads(core.operation))

    @property
    def interval(self) -> tuple[float, float]:
        """What the numbers have to be between; of several intervals, the least and the largest end."""
        return self._core.interval

    @property
    def error(self) -> float:
        """Bound on the distance to the function where it was fitted, or an estimate: see `fit`."""
        return self._core.error

    @property
    def coefficients(self) -> list[float]:
        """Its coefficients in Chebyshev's basis on the interval."""
        return list(self._core.coefficients)

    @property
    def levels(self) -> int:
        """Levels of its evaluation, the logarithm of the degree; a wide or narrow interval takes one more."""
        return self._core.levels

    @property
    def chebyshev(self) -> bases.Chebyshev:
        """The same as NumPy has it."""
        return bases.Chebyshev(self._core.coefficients, domain=self.interval)

    def __call__(self, x: Any) -> Any:
        """The polynomial's value at a plain number or array.

        Raises `InputError` for numbers outside of the interval; `chebyshev` takes them.
        """
        values = np.asarray(x, dtype=np.float64)
        if self._function is not None:
            inside(values, self.interval)
        return self.chebyshev(values)

    def plot(self) -> Picture:
        """A picture: function and polynomial on the interval and around it, and how far they are apart.

        Raises `UnsupportedError` without matplotlib.
        """
        return _plot.of_polynomial(self, self._true)

    @property
    def _true(self) -> Callable[[Any], Any]:
        """The function; the polynomial itself where it stands for none."""
        if callable(self._function):
            return cast("Callable[[Any], Any]", self._function)
        named: dict[str, Callable[[Any], Any]] = {
            "sigmoid": lambda t: np.exp(-np.logaddexp(0, -t)),
            "step": lambda t: np.heaviside(t, 0.5),
        }
        if self._function in named:
            return named[self._function]
        return getattr(np, self._function) if self._function else self.chebyshev

    def __repr__(self) -> str:
        (low, high), degree = self.interval, len(self._core.coefficients) - 1
        where = f"[{low:g}, {high:g}] within {self.error:.1e}"
        return f"<sudare polynomial of degree {degree} on {where}, {self.levels} levels>"


def fit(
    function: Callable[[float], Any],
    interval: Interval,
    degree: int | None = None,
    *,
    error: float | None = None,
) -> Polynomial:
    """The polynomial of a degree that is nearest to a function on an interval, or on several at once.

    Nearest in the largest distance, which is its `error`. `function` takes one number. Outside of the
    interval nothing is promised, and a polynomial grows fast there. In place of a degree, an `error`
    takes the least of the degrees 1, 2, 3, 5, 7, 11, 15, 23, 31, 47 and 63 that comes so near.

    Of NumPy's exp, tanh, sqrt, reciprocal, log, sin, cos, sign and absolute (and `math`'s and Python's own),
    `error` is a bound, with the rounding of doubles in it. Of any other function it is an estimate, one per
    cent over what a fine grid finds: what happens between its points is not seen. Where the grid disagrees
    with that of the fit, the function is refused. With a degree and an `error`, the error is your word.

    Raises `InputError` for an interval or a degree that is none, where no degree comes as near, where the
    error is estimated and the function changes too fast for that, or where a stated error is too small;
    `UnsupportedError` for what is no function of a number.

    >>> exp = fit(np.exp, (-1, 1), degree=7)
    >>> exp
    <sudare polynomial of degree 7 on [-1, 1] within 2.0e-07, 3 levels>
    >>> sign = fit(np.sign, [(-1, -0.1), (0.1, 1)], degree=15)
    >>> bool(abs(sign(0.3) - 1) <= sign.error < 0.13)
    True
    """
    if not callable(function):
        raise UnsupportedError(f"a polynomial is fitted to a function of one number, not to {function!r}")
    known = KNOWN.get(function) if isinstance(function, Hashable) else None
    return fitted(known or function, interval, degree, error)


def fitted(function: Any, interval: Interval, degree: int | None, error: float | None) -> Polynomial:
    """What `fit` gives, for a function or the name of one that is known."""
    pairs, wanted = intervals(interval), None if error is None else real(error, "error")
    if degree is not None:
        core = _core.Polynomial.fit(function, pairs, count(degree, "degree"), wanted)
        if wanted is not None and core.error > wanted:
            raise InputError(
                f"degree {degree} comes within {core.error:.1e}, and {wanted:.1e} is wanted; take a higher "
                "degree or a larger error"
            )
        return Polynomial(core, function, stated=wanted is not None and not isinstance(function, str))
    if wanted is None:
        raise UnsupportedError(
            "give the degree of the polynomial, degree=7, or how near it has to come, error=1e-3"
        )
    refusal: InputError | None = None
    for tried in DEGREES:
        try:
            core = _core.Polynomial.fit(function, pairs, tried)
        except InputError as error:
            # A higher degree has more points.
            refusal = error
            continue
        refusal = None
        if core.error <= wanted:
            return Polynomial(core, function)
    raise refusal or InputError(
        f"degree {DEGREES[-1]} comes within {core.error:.1e} of this function, and {wanted:.1e} is wanted; "
        "take a shorter interval or a larger error"
    )


#: What functions met while `ranges` looks: their names, the least and the largest value.
MET: ContextVar[list[tuple[str, float, float]] | None] = ContextVar("MET", default=None)


def meets(name: str, values: Any) -> bool:
    """Whether `ranges` is looking; it is told what a function meets."""
    met = MET.get()
    if met is not None and np.size(values):
        met.append((name, float(np.min(values)), float(np.max(values))))
    return met is not None


def inside(values: Any, interval: Interval, name: str = "fit") -> None:
    """Refuses plain values that are under an interval or over it.

    Raises `InputError` for these.
    """
    low, high = hull(interval)
    given = np.asarray(values, dtype=np.float64)
    if meets(name, given):
        return
    out = np.argwhere((given < low - abs(low) * ROUNDED) | (given > high + abs(high) * ROUNDED))
    if len(out):
        # Values are nobody's business but the caller's, and messages travel: the position alone.
        which = f"the element at {tuple(out[0].tolist())}" if given.ndim else "the number"
        raise InputError(f"{which} is outside of the interval from {low:g} to {high:g}; widen it")


def hull(interval: Interval) -> tuple[float, float]:
    """Least and largest end of an interval or several."""
    pairs = intervals(interval)
    return min(low for low, _ in pairs), max(high for _, high in pairs)


def powers(x: Operand, coefficients: Sequence[float]) -> Operand:
    """c_0 + c_1 x + c_2 x^2 + ..., with as few products in a row as can be."""
    squares = {1: x}

    def square(m: int) -> Operand:
        if m not in squares:
            squares[m] = square(m // 2) * square(m // 2)
        return squares[m]

    def value(c: Sequence[float]) -> Operand | float:
        degree = max((k for k, factor in enumerate(c) if factor), default=0)
        if degree == 0:
            return float(c[0])
        m = 1 << (degree.bit_length() - 1)
        return square(m) * value(c[m:]) + value(c[:m])

    found = value(coefficients)
    if isinstance(found, float):
        raise InputError("a polynomial of degree 0 is a number: write that number")
    return found


def polynomial(
    function: Any, interval: Interval | None, degree: int | None, max_abs: float | None
) -> Polynomial:
    """What `x.apply` takes: a fitted polynomial, one of NumPy's, or a function to fit one to.

    One of NumPy's stands for itself: where its domain does not hold elements up to `max_abs`, it is written
    on an interval that does.
    """
    if isinstance(function, Polynomial):
        if interval is not None or degree is not None:
            raise UnsupportedError("a fitted polynomial has an interval and a degree of its own")
        return function
    if isinstance(function, bases.Polynomial | bases.Chebyshev):
        if degree is not None:
            raise UnsupportedError("one of NumPy's polynomials has a degree of its own")
        [domain] = intervals(tuple(function.domain) if interval is None else interval)
        if max_abs is not None and max_abs > max(map(abs, domain)) * (1 + ROUNDED):
            domain = (-max_abs if domain[0] < 0 else domain[0], max_abs if domain[1] > 0 else domain[1])
        converted = function.convert(domain=domain, kind=bases.Chebyshev)
        return Polynomial(_core.Polynomial.chebyshev([float(c) for c in converted.coef], domain), None)
    if interval is None or degree is None:
        raise UnsupportedError(
            "give the interval that holds the numbers and a degree: interval=(-1, 1), degree=7"
        )
    return fit(function, interval, degree)


def intervals(interval: Interval) -> list[tuple[float, float]]:
    """One interval or several, as several."""
    several: list[Any] = list(interval) if isinstance(interval, Sequence | np.ndarray) else []
    pairs = several if all(isinstance(part, Sequence | np.ndarray) for part in several) else [several]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise InputError(f"an interval is two numbers, (-1, 1), or a list of such pairs, not {interval!r}")
    ends = [(real(low, "an interval's end"), real(high, "an interval's end")) for low, high in pairs]
    for low, high in ends:
        if low >= high:
            raise InputError(
                f"an interval begins at its lower end: ({high:g}, {low:g}), not ({low:g}, {high:g})"
            )
    return ends
