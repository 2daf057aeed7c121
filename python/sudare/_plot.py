"""Plans and polynomials as pictures: the expression, levels, time, memory. matplotlib draws them."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import _core
from ._errors import UnsupportedError
from ._html import MOST, seconds, size

if TYPE_CHECKING:
    from ._plan import Plan
    from ._polynomial import Polynomial

__all__ = ["Picture"]

FAINT, KEYS, INPUT, RESULT = "#cbd2d9", "#b44d12", "#2b6cb0", "#2f855a"
#: Operations that are shown at most, and characters of a box.
MOST_BOXES, LONGEST = 24, 32


class Step(NamedTuple):
    """An operation of a plan."""

    text: str
    operands: list[int]
    level: Any
    error: Any
    share: Any

    @property
    def short(self) -> str:
        """Its text, cut where it is long."""
        return self.text if len(self.text) <= LONGEST else f"{self.text[: LONGEST - 1]}…"


class Picture:
    """A picture that matplotlib drew. A notebook shows it; `save` writes it to a file."""

    def __init__(self, figure: Any) -> None:
        #: matplotlib's `Figure`, to be changed as any other.
        self.figure = figure

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as its name says, `plan.png`, `plan.pdf` or `plan.svg`; SVG without an ending.

        Raises `UnsupportedError` for an ending that matplotlib does not write.
        """
        ending = os.path.splitext(os.fspath(path))[1].removeprefix(".").lower() or "svg"
        known = self.figure.canvas.get_supported_filetypes()
        if ending not in known:
            raise UnsupportedError(
                f"pictures are written as {', '.join(sorted(known))}, not as {ending}; name such a file"
            )
        _core.write_file(path, self._drawn(ending), False)

    @property
    def svg(self) -> str:
        """It as SVG."""
        return self._drawn("svg").decode()

    def _drawn(self, ending: str) -> bytes:
        out = io.BytesIO()
        self.figure.savefig(out, format=ending, bbox_inches="tight")
        return out.getvalue()

    def _repr_html_(self) -> str:
        # What stands before the picture itself has no place in a page.
        return self.svg[self.svg.index("<svg") :]

    def __repr__(self) -> str:
        return "<sudare picture: save(path), figure>"


def _levels(axes: Any, steps: list[Step], depth: int) -> None:
    """The level of each operation's value, of those that the modulus has, with its error."""
    places = list(range(len(steps)))
    axes.barh(places, depth + 1, color=FAINT)
    colours = [INPUT if not step.operands else RESULT for step in steps]
    axes.barh(places, [step.level + 1 for step in steps], color=colours)
    for at, step in zip(places, steps, strict=True):
        if step.error is not None and step.operands:
            axes.annotate(
                f"error {step.error:.1e}", (depth + 1, at), (4, 0), textcoords="offset points", va="center"
            )
    axes.set(
        title="levels, step by step", yticks=places, yticklabels=[s.short for s in steps], xlabel="levels"
    )
    axes.invert_yaxis()


def _times(axes: Any, steps: list[Step], whole: float) -> None:
    """The operations that take longest, by their names."""
    longest = sorted((s for s in steps if s.share), key=lambda s: -s.share)[:MOST]
    places = list(range(len(longest)))
    bars = axes.barh(places, [s.share * whole for s in longest], color=INPUT)
    axes.set(yticks=places, yticklabels=[s.short for s in longest])
    axes.bar_label(bars, [f"{seconds(s.share * whole)}, {100 * s.share:.0f} %" for s in longest], padding=4)
    axes.set(title=f"time by operation, together about {seconds(whole)}", xlabel="time")
    axes.xaxis.set_major_formatter(lambda value, _: seconds(value))
    axes.margins(x=0.25)
    axes.invert_yaxis()


def _graph(axes: Any, steps: list[Step]) -> None:
    """The expression as a graph, from inputs on the left to results on the right."""
    depth: list[int] = []
    for step in steps:
        depth.append(1 + max((depth[of] for of in step.operands), default=-1))
    rows: dict[int, int] = {}
    places = []
    for at in depth:
        rows[at] = rows.get(at, -1) + 1
        places.append((float(at), -float(rows[at])))
    for at, step in enumerate(steps):
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": RESULT if step.operands else INPUT}
        axes.text(*places[at], step.short, ha="center", va="center", fontsize="small", bbox=box, zorder=3)
        for of in dict.fromkeys(step.operands):
            axes.annotate(
                "", places[at], places[of], arrowprops={"arrowstyle": "->", "color": "#616e7c"}, zorder=1
            )
    axes.set(title="the expression", xlim=(-0.6, max(depth) + 0.6), ylim=(-max(rows.values()) - 0.6, 0.6))
    axes.axis("off")


def _memory(axes: Any, plan: Plan) -> None:
    """What the server holds while it computes."""
    summary = plan.summary
    relin = sum(key["bytes"] for key in summary["keys"] if key["element"] == 0)
    rotations = [key["bytes"] for key in summary["keys"] if key["element"] != 0]
    values = sum(operand["bytes"] for operand in summary["operands"])
    parts = [("key of products", relin, KEYS), (f"{len(rotations)} keys of rotations", sum(rotations), KEYS)]
    parts += [("operands and result", values, INPUT)]
    parts += [("tables, what is between", summary["memory"] - values - relin - sum(rotations), FAINT)]
    parts = [part for part in parts if part[1] > 0]
    bars = axes.barh([name for name, _, _ in parts], [n for _, n, _ in parts], color=[c for *_, c in parts])
    axes.bar_label(bars, [size(amount) for _, amount, _ in parts], padding=4)
    axes.set(title=f"memory of the server, together {size(summary['memory'])}", xlabel="bytes")
    axes.margins(x=0.2)
    axes.invert_yaxis()


def _alternatives(axes: Any, points: list[dict[str, Any]]) -> None:
    """Time and memory of all that was considered; what was taken is filled."""
    for point in points:
        taken = point["verdict"] == "taken"
        place = point["seconds"], point["memory"]
        axes.plot(*place, "o", color=RESULT, fillstyle="full" if taken else "none", gid=point["verdict"])
        label = f"{point['method']}, N = 2^{point['log_n']}"
        axes.annotate(label, place, (6, 4), textcoords="offset points", fontsize="small")
    axes.set(title="considered: memory against time", xscale="log", yscale="log")
    axes.set(xlabel="time (logarithmic)", ylabel="memory (logarithmic)")
    axes.xaxis.set_major_formatter(lambda value, _: seconds(value))
    axes.yaxis.set_major_formatter(lambda value, _: size(value))
    axes.minorticks_off()
    axes.margins(0.15)


def of_plan(plan: Plan) -> Picture:
    """Levels, the expression, time, memory, and what was considered.

    Raises `UnsupportedError` without matplotlib.
    """
    steps = [Step(*line) for line in plan._core.operations()]
    steps = [step._replace(text=plan._with_names(step.text)) for step in steps]
    known, summary = [step for step in steps if step.level is not None], plan.summary
    points = [p for p in plan.considered if p["seconds"] > 0 and p["memory"] > 0]
    parts: list[tuple[Callable[[Any], None], int]] = []
    if len(steps) <= MOST_BOXES:
        parts.append((lambda axes: _graph(axes, steps), 2 + len(steps) // 4))
    if known:
        shown = known if len(known) <= MOST_BOXES else known[:: -(-len(known) // MOST_BOXES)]
        parts.append((lambda axes: _levels(axes, shown, summary["depth"]), 1 + len(shown) // 3))
    if plan.seconds and any(step.share for step in steps):
        whole = plan.seconds
        parts.append((lambda axes: _times(axes, steps, whole), 3))
    parts.append((lambda axes: _memory(axes, plan), 3))
    if points:
        parts.append((lambda axes: _alternatives(axes, points), 3))
    figure = _figure((7.5, 1.1 * sum(height for _, height in parts)))
    figure.suptitle(plan.method)
    places = figure.subplots(len(parts), squeeze=False, height_ratios=[height for _, height in parts])
    for (draw, _), axes in zip(parts, places.ravel(), strict=True):
        draw(axes)
    return Picture(figure)


def of_polynomial(fitted: Polynomial, function: Callable[[Any], Any]) -> Picture:
    """A polynomial beside its function on the interval and around it, and how far they are apart.

    Raises `UnsupportedError` without matplotlib.
    """
    low, high = fitted.interval
    beside = (high - low) / 8
    figure = _figure((7.5, 5))
    above, below = figure.subplots(2, sharex=True, height_ratios=(2, 1))
    inside, around = np.linspace(low, high, 801), np.linspace(low - beside, high + beside, 801)
    with np.errstate(all="ignore"):
        true, wide = _values(function, inside), _values(function, around)
    near = fitted.chebyshev(inside)
    above.plot(around, wide, color=FAINT, linewidth=4, label="function")
    above.plot(inside, near, color=INPUT, label="polynomial")
    above.plot(around, fitted.chebyshev(around), ":", color=KEYS, label="polynomial outside of the interval")
    seen = np.concatenate([true[np.isfinite(true)], near])
    room = 0.3 * ((seen.max() - seen.min()) or 1.0)
    above.set(title=repr(fitted)[8:-1], ylim=(seen.min() - room, seen.max() + room))
    above.legend(fontsize="small")
    below.plot(inside, np.abs(true - near), color=INPUT)
    below.axhline(fitted.error, color=KEYS, linestyle="--", label=f"error {fitted.error:.1e}")
    below.set(xlabel="element", ylabel="distance (logarithmic)", yscale="log")
    below.legend(fontsize="small")
    for axes in (above, below):
        axes.axvspan(low, high, color=INPUT, alpha=0.06)
    return Picture(figure)


def _values(function: Callable[[Any], Any], at: Any) -> Any:
    """A function of one number at many; nothing where it has no value."""

    def value(t: float) -> float:
        try:
            return float(function(t))
        except (ValueError, ArithmeticError):
            return float("nan")

    return np.array([value(t) for t in at])


def _figure(size: tuple[float, float]) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UnsupportedError("pictures are drawn by matplotlib: pip install 'sudare[plot]'") from None
    return Figure(figsize=size, layout="constrained", facecolor="white")
