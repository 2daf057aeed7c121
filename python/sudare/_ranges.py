"""What values a function meets on a sample: bounds and intervals for its plan."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._errors import InputError
from ._polynomial import MET
from ._spec import spec
from ._values import array, real

__all__ = ["Range", "Ranges", "ranges"]


@dataclass(frozen=True)
class Range:
    """Where the values lie that a function of `sudare` met, and what to write for them."""

    function: str
    """Its name: "sigmoid", "bounded" and so on."""
    low: float
    """The least value that it met."""
    high: float
    """The largest."""
    interval: tuple[float, float]
    """Both with the margin, rounded outwards."""

    @property
    def max_abs(self) -> float:
        """A bound on both sides of zero."""
        return max(map(abs, self.interval))


@dataclass(frozen=True)
class Ranges:
    """What `ranges` proposes: `specs` for a plan, and an interval for each function that was called."""

    specs: dict[str, Any]
    """A description of each input."""
    met: tuple[Range, ...]
    """Functions with intervals, in the order of their calls; of equal names all that they met together."""

    @property
    def max_abs(self) -> dict[str, float]:
        """Bounds of the inputs."""
        return {name: given.max_abs for name, given in self.specs.items()}

    def __str__(self) -> str:
        lines = [
            f"{name}=sudare.spec({given.shape}, max_abs={given.max_abs:g})"
            for name, given in self.specs.items()
        ]
        for found in self.met:
            low, high = found.interval
            write = f"max_abs={found.max_abs:g}" if found.function in BOTH_SIDES else f"({low:g}, {high:g})"
            lines.append(f"{found.function}: met {found.low:.3g} to {found.high:.3g}; write {write}")
        return "\n".join(lines)


#: Functions that take a bound on both sides of zero.
BOTH_SIDES = ("bounded", "maximum", "minimum", "sign", "greater")


def ranges(function: Callable[..., Any], /, *samples: Any, margin: float = 0.25, **named: Any) -> Ranges:
    """Bounds and intervals for the plan of a function, from a plain sample of its inputs.

    The function is run with NumPy's arrays. Each input gets a `max_abs`, and each function with an interval
    (`sigmoid`, `sqrt`, `bounded`, what `fit` made …) the interval in which its values lay, wider by `margin`
    of its width at each end; of what is above zero, where logarithms and roots are, the lower end stays above
    zero. Values outside of the intervals that the function says are met, too, and not refused.

    A sample is no proof: what is said has to hold for all that will be encrypted. Bounds are in the plan,
    which is public, and tell what the sample is like.

    Raises `InputError` for a margin that is negative and for a sample with values that are not finite,
    `UnsupportedError` for a sample of anything but numbers.

    >>> import sudare
    >>> found = ranges(lambda X: sudare.sigmoid(X * 4, (-1, 1), degree=7), np.array([[0.5, -1.0]]))
    >>> print(found)
    X=sudare.spec((1, 2), max_abs=1.3)
    sigmoid: met -4 to 2; write (-5.5, 3.5)
    """
    wider = real(margin, "margin")
    if not wider >= 0:
        raise InputError(f"a margin is zero or a part of the width, 0.25 for example, not {margin!r}")
    bound = inspect.signature(function).bind(*samples, **named)
    given = {name: array(x) for name, x in bound.arguments.items()}
    specs = {}
    for name, values in given.items():
        if values.dtype.kind not in "biuf" or not np.isfinite(values).all():
            raise InputError(
                f"{name} is not a sample of finite numbers; leave out rows in which values are missing"
            )
        largest = float(np.abs(values.astype(np.float64)).max(initial=0)) * (1 + wider)
        specs[name] = spec(values.shape, max_abs=_outwards(largest) or 1.0)
    met: list[tuple[str, float, float]] = []
    token = MET.set(met)
    try:
        with np.errstate(all="ignore"):
            function(**given)
    finally:
        MET.reset(token)
    found: dict[str, tuple[float, float]] = {}
    for name, low, high in met:
        known = found.get(name, (math.inf, -math.inf))
        found[name] = min(known[0], low), max(known[1], high)
    return Ranges(specs, tuple(_proposed(name, *ends, wider) for name, ends in found.items()))


def _proposed(name: str, low: float, high: float, margin: float) -> Range:
    if not (math.isfinite(low) and math.isfinite(high)):
        raise InputError(f"{name} has values that are not finite in this sample; leave out such rows")
    wider = margin * ((high - low) or abs(high) or 1.0)
    under = low - wider if low <= 0 or name not in POSITIVE else low / (1 + margin)
    return Range(name, low, high, (-_outwards(-under), _outwards(high + wider)))


#: Functions of what is above zero.
POSITIVE = ("log", "sqrt", "reciprocal")


def _outwards(x: float) -> float:
    """Not less, in two digits."""
    if x == 0:
        return 0.0
    step = 10.0 ** (math.floor(math.log10(abs(x))) - 1)
    return float(f"{math.ceil(x / step * (1 - math.copysign(1e-12, x))) * step:.12g}")
