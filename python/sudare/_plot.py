"""A plan as a picture: levels, memory, and what else was considered. SVG without a script."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from . import _core
from ._errors import InputError
from ._html import MOST, seconds, size

if TYPE_CHECKING:
    from ._plan import Plan

__all__ = ["Picture"]

WIDTH = 680
#: Where marks begin, and how far they reach.
LEFT, SPAN = 190, 330
FAINT, DARK, KEYS, INPUT, RESULT = "#616e7c", "#1f2933", "#b44d12", "#2b6cb0", "#2f855a"


class Picture:
    """A picture in SVG. A notebook shows it; `save` writes it to a file."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as an SVG file, which browsers and word processors open.

        Raises `InputError` for a name that says another format.
        """
        target = Path(path)
        if target.suffix.lower() not in ("", ".svg"):
            raise InputError(
                f"a picture is written as SVG, and {target.name!r} says otherwise; write "
                f"{target.with_suffix('.svg').name!r}, which browsers and word processors open and convert"
            )
        _core.write_file(target, self.svg.encode(), False)

    def _repr_html_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<sudare picture, {len(self.svg)} bytes of SVG: save(path)>"


def _text(x: float, y: float, text: str, colour: str = FAINT, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}">{escape(text)}</text>'


def _bar(x: float, y: float, width: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="12" rx="2" fill="{colour}"/>'


def _levels(plan: Plan) -> list[str]:
    """A line for each operand: the levels that it has, of those that the modulus has."""
    summary, lines = plan.summary, []
    step = SPAN / (summary["depth"] + 1)
    for at, operand in enumerate(summary["operands"][:MOST]):
        y, result = 18 * at, operand["name"] == "result"
        lines.append(_text(0, y + 11, plan._with_names(operand["name"])[:24], DARK))
        for level in range(summary["depth"] + 1):
            left = level <= operand["level"]
            lines.append(
                _bar(LEFT + step * level, y, step - 3, (RESULT if result else INPUT) if left else "#e4e7eb")
            )
        error = operand.get("error")
        figures = f"±{operand['max_abs']:.3g}" + ("" if error is None else f", error {error:.1e}")
        lines.append(_text(LEFT + SPAN + 8, y + 11, figures))
    return lines


def _amounts(parts: Sequence[tuple[str, float, str]]) -> list[str]:
    most, lines = max((amount for _, amount, _ in parts), default=0.0) or 1.0, []
    for at, (name, amount, colour) in enumerate(parts):
        lines.append(_text(0, 18 * at + 11, name, DARK))
        lines.append(_bar(LEFT, 18 * at, SPAN * amount / most, colour))
        lines.append(_text(LEFT + SPAN * amount / most + 8, 18 * at + 11, size(amount)))
    return lines


def _memory(plan: Plan) -> list[str]:
    """What the server holds while it computes."""
    summary = plan.summary
    relin = sum(key["bytes"] for key in summary["keys"] if key["element"] == 0)
    turns = [key["bytes"] for key in summary["keys"] if key["element"] != 0]
    parts = [("key of products", float(relin), KEYS)] if relin else []
    if turns:
        parts.append((f"{len(turns)} keys of rotations", float(sum(turns)), KEYS))
    values = float(sum(operand["bytes"] for operand in summary["operands"]))
    parts.append(("operands and result", values, INPUT))
    rest = summary["memory"] - values - relin - sum(turns)
    if rest > 0:
        parts.append(("tables, what is between", float(rest), FAINT))
    return [*_amounts(parts), _text(0, 18 * len(parts) + 11, f"together {size(summary['memory'])}")]


def _alternatives(plan: Plan) -> list[str]:
    """Time and memory of all that was considered, both as logarithms; what was taken is filled."""
    points = [p for p in plan.considered if p["seconds"] > 0 and p["memory"] > 0]
    if not points:
        return []
    spans = []
    for name in ("seconds", "memory"):
        values = [math.log10(p[name]) for p in points]
        spans.append((min(values) - 0.15, max(values) + 0.15))
    (left, right), (low, high) = spans
    height, lines = 180, [f'<path d="M{LEFT},0V180H{LEFT + SPAN}" fill="none" stroke="#cbd2d9"/>']
    for p in sorted(points, key=lambda p: p["verdict"] == "taken"):
        x = LEFT + SPAN * (math.log10(p["seconds"]) - left) / (right - left)
        y = height - height * (math.log10(p["memory"]) - low) / (high - low)
        taken = p["verdict"] == "taken"
        about = (
            f"{p['method']}, N = 2^{p['log_n']}: {seconds(p['seconds'])}, {size(p['memory'])}; {p['verdict']}"
        )
        lines.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{6 if taken else 4}" stroke="{RESULT}" '
            f'fill="{RESULT if taken else "#fff"}"><title>{escape(about)}</title></circle>'
        )
        if taken:
            lines.append(_text(x + 10, y + 4, p["method"][:24], DARK))
    for value, y in ((high, 8), (low, height)):
        lines.append(_text(LEFT - 8, y, size(10**value), anchor="end"))
    for value, x in ((left, LEFT), (right, LEFT + SPAN)):
        lines.append(_text(x, height + 16, seconds(10**value), anchor="middle"))
    return lines


def of_plan(plan: Plan) -> Picture:
    """Levels, memory, and what was considered."""
    panels = [("levels of the operands", _levels(plan)), ("memory of the server", _memory(plan))]
    if alternatives := _alternatives(plan):
        panels.append(("considered: memory against time", alternatives))
    heights = [18 * min(len(plan.summary["operands"]), MOST), 18 * 6, 200]
    y, out = 0, []
    for (title, lines), height in zip(panels, heights, strict=False):
        out.append(f'<g transform="translate(12,{y + 22})">{_text(0, 0, title, DARK)}')
        out.append(f'<g transform="translate(0,12)">{"".join(lines)}</g></g>')
        y += height + 52
    return Picture(
        f'<svg role="img" xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" '
        f'viewBox="0 0 {WIDTH} {y}" style="background:#fff;display:block" '
        f'font-family="system-ui,sans-serif" font-size="12"><title>{escape(plan.method)}</title>'
        f"{''.join(out)}</svg>"
    )
