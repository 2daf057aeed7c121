"""What objects look like in a notebook: HTML with its own styles and pictures in SVG, without a script.

Everything that came from outside (names of inputs and columns, methods) is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._bits import BitsClient, BitsServer
    from ._bits_array import EncryptedBits
    from ._context import Context
    from ._matrix import Encrypted
    from ._moments import Moments
    from ._plan import Plan
    from ._session import Client, Server
    from ._stored import StoredMatrix

#: Rows that are shown at most.
MOST = 12
CARD = (
    "font-family:system-ui,sans-serif;font-size:13px;line-height:1.45;color:#1f2933;background:#fff;"
    "border:1px solid #cbd2d9;border-radius:6px;padding:10px 14px;display:inline-block;max-width:60em"
)
HEAD = "font-weight:600;margin-bottom:6px"
CELL = "padding:1px 14px 1px 0;text-align:left;vertical-align:top;background:#fff;color:#1f2933"
NUMBER = CELL.replace("left", "right") + ";font-variant-numeric:tabular-nums"
FAINT = "color:#616e7c"

Row = tuple[str, str]


def _small(error: float) -> str:
    """An error in two digits, as the plan's table has it."""
    digits, power = f"{error:.1e}".split("e")
    return f"{digits}e{int(power)}"


def size(nbytes: float) -> str:
    """Bytes for people."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if nbytes >= factor:
            return f"{nbytes / factor:.3g} {unit}"
    return f"{nbytes:.0f} B"


def seconds(time: float) -> str:
    """Seconds for people."""
    for unit, factor in (("s", 1.0), ("ms", 1e-3)):
        if time >= factor:
            return f"{time / factor:.3g} {unit}"
    return f"{time * 1e6:.3g} µs"


def _rows(rows: Iterable[Row]) -> str:
    cells = (
        f'<tr style="background:#fff"><td style="{CELL};{FAINT}">{escape(name)}</td>'
        f'<td style="{CELL}">{escape(text)}</td></tr>'
        for name, text in rows
    )
    return f'<table style="border-collapse:collapse;margin:0">{"".join(cells)}</table>'


def _grid(heads: Sequence[str], lines: Sequence[Sequence[str]], chosen: int = -1) -> str:
    """A table of figures, the first column of names, one line of it chosen."""
    head = "".join(
        f'<th style="{CELL if i == 0 else NUMBER};{FAINT}">{escape(h)}</th>' for i, h in enumerate(heads)
    )
    body = []
    for at, line in enumerate(lines[:MOST]):
        weight = ";font-weight:600" if at == chosen else ""
        cells = (
            f'<td style="{CELL if i == 0 else NUMBER}{weight}">{escape(x)}</td>' for i, x in enumerate(line)
        )
        body.append(f'<tr style="background:#fff">{"".join(cells)}</tr>')
    more = len(lines) - MOST
    rest = f'<div style="{FAINT}">and {more} more</div>' if more > 0 else ""
    return (
        '<table style="border-collapse:collapse;margin:8px 0 0"><thead><tr style="background:#fff">'
        f"{head}</tr></thead><tbody>{''.join(body)}</tbody></table>{rest}"
    )


def _bars(parts: Sequence[tuple[str, float, str]], text: Any = size) -> str:
    """Amounts side by side, each with its name: who holds how much."""
    parts = parts[:MOST]
    most = max((amount for _, amount, _ in parts), default=0.0) or 1.0
    lines = []
    for i, (name, amount, colour) in enumerate(parts):
        y, width = 20 * i, max(1.0, 220 * amount / most)
        lines.append(
            f'<text x="0" y="{y + 13}" fill="#616e7c">{escape(name[:18])}</text>'
            f'<rect x="130" y="{y + 3}" width="{width:.1f}" height="12" rx="2" fill="{colour}"/>'
            f'<text x="{136 + width:.1f}" y="{y + 13}" fill="#1f2933">{escape(text(amount))}</text>'
        )
    height = 20 * len(parts)
    return (
        f'<svg role="img" xmlns="http://www.w3.org/2000/svg" width="440" height="{height}" '
        f'viewBox="0 0 440 {height}" style="margin-top:8px;display:block" font-family="system-ui,sans-serif" '
        f'font-size="12">{"".join(lines)}</svg>'
    )


def card(title: str, *parts: str) -> str:
    """A box with a title."""
    return f'<div style="{CARD}"><div style="{HEAD}">{escape(title)}</div>{"".join(parts)}</div>'


def plan(x: Plan) -> str:
    """A plan: what it computes, how well, and what each side has to hold."""
    summary = x.summary
    keys = sum(key["bytes"] for key in summary["keys"])
    text = dict(line.strip().split(maxsplit=1) for line in str(x).splitlines() if len(line.split()) > 1)
    rows: list[Row] = [
        (name, text[name]) for name in ("computes", "error", "scheme", "method") if name in text
    ]
    rows.append(("time", f"about {seconds(summary['seconds'])}" if summary["seconds"] else "not estimated"))
    rows.append(("memory", size(summary["memory"])))
    bars = [("keys", float(keys), "#b44d12")]
    bars += [
        (part["name"], float(part["bytes"]), "#2b6cb0" if part["name"] != "result" else "#2f855a")
        for part in summary["operands"]
    ]
    considered = x.considered
    lines = [
        [
            other["method"],
            f"2^{other['log_n']}",
            size(other["key_bytes"]),
            seconds(other["seconds"]),
            _small(other["error"]),
        ]
        for other in considered
    ]
    taken = next((i for i, other in enumerate(considered) if other["verdict"] == "taken"), -1)
    # Statistics have one method, and nothing is compared.
    grid = _grid(["method", "N", "keys", "time", "error"], lines, taken) if lines else ""
    return card(f"Sudare plan {x.hash[:12]}", _rows(rows), _bars(bars), grid)


def context(x: Context) -> str:
    """A context: what it may do, and what its keys take."""
    rows = [
        ("depth", f"{x.depth} {'product' if x.depth == 1 else 'products'} in a row, {x.levels} levels"),
        ("ring", f"N = 2^{x._server._core.log_n}"),
        ("threads", str(x.threads)),
        ("secret key", "inside, hidden"),
    ]
    return card("Sudare context", _rows(rows), _bars([("keys", float(x.key_bytes), "#b44d12")]))


def encrypted(x: Encrypted) -> str:
    """An encrypted value: what is public of it, and how many levels are left."""
    rows = [("shape", f"{x.shape}, {x.dtype}"), ("elements", f"up to {x.max_abs:.6g}")]
    if x.error is not None and not (x.plan is not None and x.plan.exact):
        rows.append(("error", f"at most {_small(x.error)}"))
    rows.append(("memory", size(x.nbytes)))
    rows.append(("belongs to", "a context" if x.plan is None else f"plan {x.plan.hash[:12]}"))
    level = "".join(
        f'<rect x="{18 * i}" y="2" width="14" height="12" rx="2" fill="#2f855a"/>'
        for i in range(min(x.level, 20))
    )
    label = f"{x.level} level{'' if x.level == 1 else 's'} left"
    picture = (
        '<svg role="img" xmlns="http://www.w3.org/2000/svg" width="480" height="18" style="margin-top:8px;'
        f'display:block" font-family="system-ui,sans-serif" font-size="12">{level}'
        f'<text x="{18 * min(x.level, 20) + 6}" y="13" fill="#616e7c">{label}</text></svg>'
    )
    return card("Sudare encrypted matrix", _rows(rows), picture)


def server(x: Server | BitsServer) -> str:
    """A server: keys to compute with, and no secret."""
    of: Plan | None = getattr(x, "plan", None)
    rows = [("computes", "what a context asks for" if of is None else f"plan {of.hash[:12]}, {of.method}")]
    if not hasattr(x, "plan"):
        rows = [("computes", "encrypted integers and booleans")]
    rows += [("key", x.key_id[:12]), ("threads", str(x.threads)), ("secret", "none")]
    held = getattr(x, "key_memory", None)
    if held is not None:
        rows.append(("keys", f"on disk, {size(held)} held at most"))
    return card("Sudare server", _rows(rows), _bars([("keys", float(x.key_bytes), "#b44d12")]))


def stored(x: StoredMatrix) -> str:
    """A stored matrix: where it is, and how it is cut."""
    (rows, columns), (down, across) = x.chunks, x.blocks.shape
    about = [
        ("path", x.path),
        ("shape", f"{x.shape}, {down} × {across} blocks of {rows[0]} × {columns[0]}"),
        ("on disk", size(x.nbytes)),
        ("plan", x.plan.hash[:12]),
        ("key", x.key_id[:12]),
        ("digest", x.digest[:12]),
    ]
    most = 16
    cells = "".join(
        f'<rect x="{13 * j}" y="{13 * i}" width="11" height="11" rx="2" fill="#2b6cb0"/>'
        for i in range(min(down, most))
        for j in range(min(across, most))
    )
    more = " …" if max(down, across) > most else ""
    high, wide = 13 * min(down, most), 13 * min(across, most)
    picture = (
        f'<svg role="img" xmlns="http://www.w3.org/2000/svg" width="{wide + 40}" height="{high + 4}" '
        'style="margin-top:8px;display:block" font-family="system-ui,sans-serif" font-size="12">'
        f'{cells}<text x="{wide + 4}" y="11" fill="#616e7c">{more}</text></svg>'
    )
    return card("Sudare stored matrix", _rows(about), picture)


def client(x: Client | BitsClient) -> str:
    """A client: its key's public name, and nothing of the key."""
    rows = [("key", x.key_id[:12]), ("secret key", "inside, hidden")]
    of: Plan | None = getattr(x, "plan", None)
    if of is not None:
        rows.insert(0, ("plan", f"{of.hash[:12]}, {of.method}"))
        if of.release is not None:
            rows.append(("releases left", str(getattr(x, "releases_left", 0))))
    return card("Sudare client", _rows(rows))


def bits(x: EncryptedBits) -> str:
    """An array of encrypted integers or booleans."""
    rows = [("shape", f"{x.shape}, {x.dtype}"), ("memory", size(x.nbytes)), ("key", x.key_id[:12])]
    return card("Sudare encrypted array", _rows(rows))


def moments(x: Moments) -> str:
    """Statistics: means and deviations with their errors, correlations as colours."""
    names = list(x.columns)
    columns = zip(names, x.mean, x.mean_error, x.std, x.std_error, strict=True)
    lines = [[n, f"{m:.6g}", _small(e), f"{s:.6g}", _small(d)] for n, m, e, s, d in columns]
    grid = _grid(["column", "mean", "±", "std", "±"], lines)
    return card(f"Sudare statistics of {x.rows} rows", grid, _heat(x.correlation.tolist(), names))


def _heat(values: list[list[float]], names: list[str]) -> str:
    """Correlations: blue for 1, red for −1, white for 0, grey where there is none."""
    side, count = 34, min(len(values), MOST)
    parts = ['<text x="112" y="-6">correlations</text>']
    for i in range(count):
        parts.append(f'<text x="104" y="{side * i + 20}" text-anchor="end">{escape(names[i][:16])}</text>')
        for j in range(count):
            value = values[i][j]
            shade = round(255 - 150 * min(abs(value), 1.0)) if value == value else 200
            colour = f"rgb({shade},{shade},255)" if value >= 0 else f"rgb(255,{shade},{shade})"
            colour = colour if value == value else "#c8c8c8"
            parts.append(
                f'<rect x="{112 + side * j}" y="{side * i}" width="{side - 2}" height="{side - 2}" '
                f'fill="{colour}"><title>{value:.3f}</title></rect>'
                f'<text x="{127 + side * j}" y="{side * i + 20}" text-anchor="middle" fill="#1f2933">'
                f"{value:.2f}</text>"
            )
    width, height = max(112 + side * count, 190), side * count + 18
    return (
        f'<svg role="img" xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 -18 {width} {height}" '
        'style="margin-top:10px;display:block" font-family="system-ui,sans-serif" font-size="11" '
        f'fill="#616e7c">{"".join(parts)}</svg>'
    )
