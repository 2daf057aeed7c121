"""Functions of encrypted numbers, by polynomials.

A plan computes a polynomial by sums and products that any expression has, which is what is composed here; a
context has a circuit of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from . import _core
from ._errors import InputError, UnsupportedError
from ._values import count, real

__all__ = ["Polynomial", "fit"]

DEGREES = (1, 2, 3, 5, 7, 11, 15, 23, 31, 47, 63)
# Degrees below this are sums of multiples.
BABIES = 4
# Coefficients that are this part of the largest are rounding.
NOTHING = 1e-15
Operand: TypeAlias = Any

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
    def coefficients(self) -> list[float]:
        """Its coefficients in Chebyshev's basis on the interval."""
        return list(self._core.coefficients)

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

    Raises `InputError` where none does, or for an interval that is none.

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
    if (degree is None) == (error is None):
        raise UnsupportedError("say how high a degree is, degree=7, or how near it comes, error=1e-3")
    pairs = _intervals(interval)
    if degree is not None:
        return Polynomial(_core.Polynomial.fit(function, pairs, count(degree, "degree")))
    wanted = real(error, "error")
    for tried in DEGREES:
        found = Polynomial(_core.Polynomial.fit(function, pairs, tried))
        if found.error <= wanted:
            return found
    raise InputError(
        f"degree {DEGREES[-1]} comes within {found.error:.1e} of this function, and {wanted:.1e} is wanted; "
        "take a shorter interval or a larger error"
    )


def chebyshev(x: Operand, coefficients: Sequence[float], interval: tuple[float, float]) -> Operand:
    """Sum of c_k T_k(u) for the variable u = (x - middle) / radius, as a plan has it.

    By p = q T_m + r with m a power of two (Paterson and Stockmeyer 1973, in Chebyshev's basis), and
    T_2k = 2 T_k^2 - 1, T_2k+1 = 2 T_k T_k+1 - u. Where u is in [-1, 1] so is every T_k, which keeps the
    bounds of the plan.
    """
    largest = max(abs(c) for c in coefficients)
    kept = [c if abs(c) > NOTHING * largest else 0.0 for c in coefficients]
    if not any(kept[1:]):
        raise InputError("a polynomial of degree 0 is a number: write that number")
    (low, high), known = interval, {}
    middle, radius = (low + high) / 2, (high - low) / 2
    centred = x - middle if middle else x
    known[1] = (centred if radius == 1 else centred * (1 / radius)).bounded(1.0)

    def term(k: int) -> Operand:
        if k not in known:
            half = term(k // 2)
            product = half * (half if k % 2 == 0 else term(k - k // 2))
            known[k] = (2 * product - (1.0 if k % 2 == 0 else known[1])).bounded(1.0)
        return known[k]

    def value(c: Sequence[float]) -> Operand | float:
        degree = max((k for k, factor in enumerate(c) if factor), default=0)
        if degree < BABIES:
            parts = [factor * term(k) for k, factor in enumerate(c[1 : degree + 1], 1) if factor]
            return sum(parts[1:], parts[0]) + c[0] if parts else float(c[0])
        m = 1 << (degree.bit_length() - 1)
        q, r = np.polynomial.chebyshev.chebdiv(c[: degree + 1], [0.0] * m + [1.0])
        return term(m) * value(np.atleast_1d(q).tolist()) + value(np.atleast_1d(r).tolist())

    return cast("Operand", value(kept))


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


def polynomial(function: Any, interval: Interval | None, degree: int | None) -> Polynomial:
    """What `x.apply` takes: a fitted polynomial, one of NumPy's, or a function to fit one to."""
    if isinstance(function, Polynomial):
        if interval is not None or degree is not None:
            raise UnsupportedError("a fitted polynomial has an interval and a degree of its own")
        return function
    if isinstance(function, np.polynomial.polynomial.Polynomial | np.polynomial.chebyshev.Chebyshev):
        if degree is not None:
            raise UnsupportedError("one of NumPy's polynomials has a degree of its own")
        [domain] = _intervals(tuple(function.domain) if interval is None else interval)
        converted = function.convert(domain=domain, kind=np.polynomial.Chebyshev)
        return Polynomial(_core.Polynomial.chebyshev([float(c) for c in converted.coef], domain))
    if interval is None or degree is None:
        raise UnsupportedError(
            "say where the numbers lie and how high a degree is: interval=(-1, 1), degree=7"
        )
    return fit(function, interval, degree)


def _intervals(interval: Interval) -> list[tuple[float, float]]:
    """One interval or several, as several."""
    several: list[Any] = list(interval) if isinstance(interval, Sequence | np.ndarray) else []
    pairs = several if all(isinstance(part, Sequence | np.ndarray) for part in several) else [several]
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise InputError(f"an interval is two numbers, (-1, 1), or a list of such pairs, not {interval!r}")
    return [(real(low, "an interval's end"), real(high, "an interval's end")) for low, high in pairs]
