"""Functions of encrypted numbers, by polynomials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from . import _core
from ._errors import InputError, UnsupportedError
from ._values import count, real

__all__ = ["Polynomial", "fit"]

Interval: TypeAlias = "tuple[float, float] | Sequence[tuple[float, float]]"


class Polynomial:
    """A polynomial on an interval that stands for a function there: `fit` makes it, `x.apply` evaluates it.

    Called with plain numbers or arrays it gives what encrypted ones would.
    """

    def __init__(self, core: _core.Polynomial) -> None:
        self._core = core

    @property
    def interval(self) -> tuple[float, float]:
        """What the numbers have to be between; of several intervals, the least and the largest end."""
        return self._core.interval

    @property
    def error(self) -> float:
        """The largest distance to the function on the intervals that it was fitted on."""
        return self._core.error

    @property
    def levels(self) -> int:
        """Levels of its evaluation, the logarithm of the degree; a wide or narrow interval takes one more."""
        return self._core.levels

    @property
    def chebyshev(self) -> np.polynomial.Chebyshev:
        """The same as NumPy has it."""
        return np.polynomial.Chebyshev(self._core.coefficients, domain=self.interval)

    def __call__(self, x: Any) -> Any:
        """The polynomial's value at a plain number or array."""
        return self.chebyshev(np.asarray(x, dtype=np.float64))

    def __repr__(self) -> str:
        (low, high), degree = self.interval, len(self._core.coefficients) - 1
        where = f"[{low:g}, {high:g}] within {self.error:.1e}"
        return f"<sudare polynomial of degree {degree} on {where}, {self.levels} levels>"


def fit(function: Callable[[float], Any], interval: Interval, degree: int) -> Polynomial:
    """The polynomial of a degree that is nearest to a function on an interval, or on several at once.

    Nearest in the largest distance, which is its `error`. `function` takes one number. Outside of the
    interval nothing is promised, and a polynomial grows fast there.

    Raises `InputError` for an interval or a degree that is none, `UnsupportedError` for what is no
    function of a number.

    >>> exp = fit(np.exp, (-1, 1), degree=7)
    >>> exp
    <sudare polynomial of degree 7 on [-1, 1] within 2.0e-07, 3 levels>
    >>> sign = fit(np.sign, [(-1, -0.1), (0.1, 1)], degree=15)
    >>> bool(abs(sign(0.3) - 1) <= sign.error < 0.07)
    True
    """
    if not callable(function):
        raise UnsupportedError(f"a polynomial is fitted to a function of one number, not to {function!r}")
    return Polynomial(_core.Polynomial.fit(function, _intervals(interval), count(degree, "degree")))


def polynomial(function: Any, interval: Interval | None, degree: int | None) -> _core.Polynomial:
    """What `x.apply` takes: a fitted polynomial, one of NumPy's, or a function to fit one to."""
    if isinstance(function, Polynomial):
        if interval is not None or degree is not None:
            raise UnsupportedError("a fitted polynomial has an interval and a degree of its own")
        return function._core
    if isinstance(function, np.polynomial.polynomial.Polynomial | np.polynomial.chebyshev.Chebyshev):
        if degree is not None:
            raise UnsupportedError("one of NumPy's polynomials has a degree of its own")
        [domain] = _intervals(tuple(function.domain) if interval is None else interval)
        converted = function.convert(domain=domain, kind=np.polynomial.Chebyshev)
        return _core.Polynomial.chebyshev([float(c) for c in converted.coef], domain)
    if interval is None or degree is None:
        raise UnsupportedError(
            "say where the numbers lie and how high a degree is: interval=(-1, 1), degree=7"
        )
    return fit(function, interval, degree)._core


def _intervals(interval: Interval) -> list[tuple[float, float]]:
    """One interval or several, as several."""
    several: list[Any] = list(interval) if isinstance(interval, Sequence | np.ndarray) else []
    pairs = several if all(isinstance(part, Sequence | np.ndarray) for part in several) else [several]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise InputError(f"an interval is two numbers, (-1, 1), or a list of such pairs, not {interval!r}")
    return [(real(low, "an interval's end"), real(high, "an interval's end")) for low, high in pairs]
