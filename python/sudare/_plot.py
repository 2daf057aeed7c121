"""A plan as a picture: levels, memory, and what else was considered. matplotlib draws it."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any

from . import _core
from ._errors import UnsupportedError
from ._html import MOST, seconds, size

if TYPE_CHECKING:
    from ._plan import Plan

__all__ = ["Picture"]

FAINT, KEYS, INPUT, RESULT = "#cbd2d9", "#b44d12", "#2b6cb0", "#2f855a"


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
            raise UnsupportedError(f"pictures are written as {', '.join(sorted(known))}, not as {ending}")
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


def _levels(axes: Any, plan: Plan) -> None:
    """The levels of each operand, of those that the modulus has, with bound and error."""
    operands, depth = plan.summary["operands"][:MOST], plan.summary["depth"]
    names = [plan._with_names(operand["name"]) for operand in operands]
    places = list(range(len(operands)))
    axes.barh(places, depth + 1, color=FAINT)
    colours = [RESULT if operand["name"] == "result" else INPUT for operand in operands]
    axes.barh(places, [operand["level"] + 1 for operand in operands], color=colours)
    for at, operand in zip(places, operands, strict=True):
        error = operand.get("error")
        figures = f"±{operand['max_abs']:.3g}" + ("" if error is None else f", error {error:.1e}")
        axes.annotate(figures, (depth + 1, at), (4, 0), textcoords="offset points", va="center")
    axes.set(title="levels of the operands", yticks=places, yticklabels=names, xlabel="levels")
    axes.invert_yaxis()


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
    """Levels, memory, and what was considered.

    Raises `UnsupportedError` without matplotlib.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UnsupportedError("pictures are drawn by matplotlib: pip install 'sudare[plot]'") from None
    points = [p for p in plan.considered if p["seconds"] > 0 and p["memory"] > 0]
    figure = Figure(figsize=(7.5, 3.0 * (3 if points else 2)), layout="constrained")
    figure.suptitle(plan.method)
    axes = figure.subplots(3 if points else 2)
    _levels(axes[0], plan)
    _memory(axes[1], plan)
    if points:
        _alternatives(axes[2], points)
    return Picture(figure)
