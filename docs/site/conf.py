"""The documentation site: `make docs`. Its figures are drawn here, by running code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "target" / "docs" / "figures"

project = "Sudare"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "index"
exclude_patterns = ["estimates", "site"]
autodoc_member_order = "bysource"
source_suffix = {".md": "markdown"}
html_theme = "pydata_sphinx_theme"
html_title = "Sudare"
html_extra_path = ["../../target/docs/extra"]
html_theme_options: dict[str, Any] = {"show_toc_level": 2, "secondary_sidebar_items": ["page-toc"]}
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
# Pages point at source files of the repository, which are no pages.
# `Server` in a signature may be that of plans or of genomes.
suppress_warnings = ["myst.xref_missing", "misc.highlighting_failure", "ref.python"]
default_role = "code"


def _draw() -> None:
    """What a notebook shows of a plan, a matrix and a server."""
    import numpy as np
    import sudare as sd

    FIGURES.mkdir(parents=True, exist_ok=True)
    plan = sd.plan(lambda A, B: A @ B, A=sd.spec((64, 32)), B=sd.spec((32, 16)), error=1e-4)
    client = sd.Client(plan)
    server = client.server()
    shown = {"plan": plan, "encrypted": client.encrypt(np.eye(64, 32), "A"), "server": server}
    for name, thing in shown.items():
        (FIGURES / f"{name}.html").write_text(thing._repr_html_(), encoding="utf-8")


def setup(app: Any) -> None:
    """Draws before pages are read."""
    app.connect("builder-inited", lambda _: _draw())
