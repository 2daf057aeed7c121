"""What objects look like in a notebook: tables in HTML with their own styles, without a script.

Everything that came from outside (names of inputs and columns, methods) is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

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
# Colours of the notebook that it is shown in, light or dark: JupyterLab's, Visual Studio Code's, Colab's.
PAPER = (
    "background:var(--jp-layout-color1,var(--vscode-editor-background,"
    "var(--colab-primary-surface-color,#fff)))"
)
INK = (
    f"{PAPER};color:var(--jp-ui-font-color1,"
    "var(--vscode-editor-foreground,var(--colab-primary-text-color,#1f2933)))"
)
CARD = (
    f"font-family:system-ui,sans-serif;font-size:13px;line-height:1.45;{INK};"
    "border:1px solid #8a949e;border-radius:6px;padding:10px 14px;display:inline-block;max-width:60em"
)
HEAD = "font-weight:600;margin-bottom:6px"
CELL = f"padding:1px 14px 1px 0;text-align:left;vertical-align:top;{INK}"
NUMBER = CELL.replace("left", "right") + ";font-variant-numeric:tabular-nums"
FAINT = "opacity:.72"

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
        f'<tr style="{PAPER}"><td style="{CELL};{FAINT}">{escape(name)}</td>'
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
        body.append(f'<tr style="{PAPER}">{"".join(cells)}</tr>')
    more = len(lines) - MOST
    rest = f'<div style="{FAINT}">and {more} more</div>' if more > 0 else ""
    return (
        f'<table style="border-collapse:collapse;margin:8px 0 0"><thead><tr style="{PAPER}">'
        f"{head}</tr></thead><tbody>{''.join(body)}</tbody></table>{rest}"
    )


def card(title: str, *parts: str) -> str:
    """A box with a title."""
    return f'<div style="{CARD}"><div style="{HEAD}">{escape(title)}</div>{"".join(parts)}</div>'


def _amounts(parts: Iterable[tuple[str, float]]) -> str:
    """Who holds how much."""
    return _grid(["", "memory"], [[name, size(amount)] for name, amount in parts])


def plan(x: Plan) -> str:
    """A plan: what it computes, how well, and what each side has to hold."""
    summary = x.summary
    text = dict(line.strip().split(maxsplit=1) for line in str(x).splitlines() if len(line.split()) > 1)
    rows: list[Row] = [
        (name, text[name]) for name in ("computes", "error", "scheme", "method", "bounds") if name in text
    ]
    rows.append(("time", f"about {seconds(summary['seconds'])}" if summary["seconds"] else "not estimated"))
    rows.append(("memory", size(summary["memory"])))
    parts = [("keys", float(sum(key["bytes"] for key in summary["keys"])))]
    parts += [(x._with_names(part["name"]), float(part["bytes"])) for part in summary["operands"]]
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
    return card(f"Sudare plan {x.hash[:12]}", _rows(rows), _amounts(parts), grid)


def context(x: Context) -> str:
    """A context: what it may do, and what its keys take."""
    rows = [
        ("depth", f"{x.depth} {'product' if x.depth == 1 else 'products'} in a row, {x.levels} levels"),
        ("ring", f"N = 2^{x._server._core.log_n}"),
        ("threads", str(x.threads)),
        ("keys", size(x.key_bytes)),
        ("secret key", "inside, hidden"),
    ]
    return card("Sudare context", _rows(rows))


def encrypted(x: Encrypted) -> str:
    """An encrypted value: what is public of it, and how many levels are left."""
    rows = [("shape", f"{x.shape}, {x.dtype}"), ("elements", f"up to {x.max_abs:.6g}")]
    if x.error is not None and not (x.plan is not None and x.plan.exact):
        rows.append(("error", f"at most {_small(x.error)}"))
    rows.append(("memory", size(x.nbytes)))
    rows.append(("levels", f"{x.level} level{'' if x.level == 1 else 's'} left"))
    rows.append(("belongs to", "a context" if x.plan is None else f"plan {x.plan.hash[:12]}"))
    return card("Sudare encrypted matrix", _rows(rows))


def server(x: Server | BitsServer) -> str:
    """A server: keys to compute with, and no secret."""
    of: Plan | None = getattr(x, "plan", None)
    rows = [("computes", "what a context asks for" if of is None else f"plan {of.hash[:12]}, {of.method}")]
    if not hasattr(x, "plan"):
        rows = [("computes", "encrypted integers and booleans")]
    rows += [("key", x.key_id[:12]), ("threads", str(x.threads)), ("secret", "none")]
    held = getattr(x, "key_memory", None)
    rows.append(("keys", size(x.key_bytes) if held is None else f"on disk, {size(held)} held at most"))
    return card("Sudare server", _rows(rows))


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
    return card("Sudare stored matrix", _rows(about))


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
    """Statistics: means and deviations with their errors, and correlations."""
    names = list(x.columns)
    columns = zip(names, x.mean, x.mean_error, x.std, x.std_error, strict=True)
    lines = [[n, f"{m:.6g}", _small(e), f"{s:.6g}", _small(d)] for n, m, e, s, d in columns]
    correlations = [[n, *(f"{r:.2f}" for r in row)] for n, row in zip(names, x.correlation, strict=True)]
    return card(
        f"Sudare statistics of {x.rows} rows",
        _grid(["column", "mean", "±", "std", "±"], lines),
        _grid(["correlations", *names[:MOST]], [line[: MOST + 1] for line in correlations]),
    )
