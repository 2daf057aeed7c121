"""What a notebook shows, rendered by a browser where there is one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import matplotlib.image
import numpy as np
import pytest
import sudare as sd
from conftest import Session

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def shown(product: Session, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """An object of each kind, by the name of its picture."""
    plan, client, server = product
    folder = tmp_path_factory.mktemp("shown")
    square = sd.spec((40, 40))
    blocked = sd.Client(sd.plan(lambda A, B: A @ B, A=square, B=square, error=1e-3, method="coefficient"))
    rng = np.random.default_rng(1)
    height = rng.normal(170, 10, 100)
    table = np.column_stack([height, 0.9 * height - 85 + rng.normal(0, 8, 100), rng.uniform(20, 80, 100)])
    statistics = sd.table(table.shape, max_abs=[250, 250, 120])
    owner = sd.Client(statistics)
    context = sd.context(depth=1, tile=8)
    bits = sd.bits(parameters="insecure_test")
    computing = owner.server()
    return {
        "plan": plan,
        "client": client,
        "server": computing,
        "keyless-server": server,
        "context": context,
        "encrypted": context.encrypt(np.eye(4)),
        "product": client.encrypt(np.eye(5, 7), "A") @ client.encrypt(np.eye(7, 3), "B"),
        "table": statistics,
        "statistics": owner.decrypt(computing.moments(owner.encrypt(table))),
        "bits": bits,
        "bits-array": bits.encrypt(np.arange(6, dtype=np.uint8)),
        "bits-server": bits.server(),
        "plot": plan.plot(),
        "table-plot": statistics.plot(),
        "stored": sd.store(folder / f"{HOSTILE[:8]}.sudare", np.eye(40), client=blocked, name="A"),
    }


class Checked(HTMLParser):
    """Refuses what could run, and elements that are not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in {
            *("div", "table", "thead", "tbody", "tr", "td", "th"),
            # What matplotlib draws.
            *("svg", "g", "path", "use", "defs", "clippath", "rect", "style", "metadata"),
            *("rdf:rdf", "cc:work", "dc:type", "dc:date", "dc:format", "dc:creator", "cc:agent", "dc:title"),
        }, tag
        for name, value in attrs:
            assert not name.startswith("on"), name
            assert "javascript:" not in (value or "")
            assert "url(" not in (value or "") or "url(#" in (value or "")
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def checked(content: str) -> str:
    parser = Checked()
    parser.feed(content)
    assert not parser.open
    return parser.text


def test_contents(shown: dict[str, Any]) -> None:
    texts = {name: checked(thing._repr_html_()) for name, thing in shown.items()}
    assert shown["plan"].method in texts["plan"]
    assert "±" in texts["statistics"] or "error" in texts["statistics"]
    assert "correlations" in texts["statistics"]
    assert texts["plan"].count("method") == 2
    assert texts["table"].count("method") == 1
    assert "1 product in a row" in texts["context"]
    assert texts["statistics"].count("1.00") >= 3
    for name in ("client", "context", "bits"):
        assert "hidden" in texts[name]
    assert "(4, 4)" in texts["encrypted"]
    assert "levels left" in texts["encrypted"]
    assert "none" in texts["server"]
    secret = shown["client"].secret_bytes()
    assert not any(secret[i : i + 16].hex() in shown["client"]._repr_html_() for i in range(0, 512, 16))


def test_plans_are_plotted(shown: dict[str, Any], tmp_path: Path) -> None:
    """The expression, levels, time, memory and alternatives, with the figures of the plan; and a file."""
    plan, picture = shown["plan"], shown["plan"].plot()
    checked(picture._repr_html_())
    axes = {axes.get_title().split(",")[0]: axes for axes in picture.figure.axes}
    assert list(axes) == [
        "the expression",
        "levels",
        "memory of the server",
        "considered: memory against time",
    ]
    assert [text.get_text() for text in axes["the expression"].texts if text.get_text()] == [
        *plan.inputs,
        " @ ".join(plan.inputs),
    ]
    for place in ("memory of the server", "considered: memory against time"):
        assert axes[place].get_xlabel()
    said = [text.get_text() for text in axes["considered: memory against time"].texts]
    assert len(said) == len([p for p in plan.considered if p["seconds"] > 0])
    names = [label.get_text() for label in axes["memory of the server"].get_yticklabels()]
    assert "key of products" not in names

    weights = np.full((7, 2), 0.5)
    deep = sd.plan(
        lambda A: ((A * A) @ weights).sum(axis=0), A=sd.spec((5, 7)), error=1e-3, security="insecure"
    )
    drawn = {axes.get_title().split(",")[0]: axes for axes in deep.plot().figure.axes}
    steps = [label.get_text() for label in drawn["levels"].get_yticklabels()]
    assert steps == [
        "A",
        "A * A",
        "plain weights",
        "A * A @ plain weights",
        "(A * A @ plain weights).sum(0)",
    ] or (sorted(steps) == sorted({"A", "A * A", "plain weights", steps[-2], steps[-1]}))
    longest = drawn["time by operation"]
    shares = [float(text.get_text().split(", ")[1].split()[0]) for text in longest.texts]
    assert shares == sorted(shares, reverse=True)
    assert 97 <= sum(shares) <= 103
    assert not any(re.search(r"[0-9a-f]{24}", label) for label in steps)
    names = [label.get_text() for label in drawn["memory of the server"].get_yticklabels()]
    assert "key of products" in names
    for name, begins in {
        "plan.png": b"\x89PNG",
        "plan.pdf": b"%PDF",
        "plan.svg": b"<?xml",
        "plan": b"<?xml",
    }.items():
        picture.save(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(begins)
    with pytest.raises(sd.UnsupportedError, match="png"):
        picture.save(tmp_path / "plan.doc")
    assert not (tmp_path / "plan.doc").exists()


def test_polynomials_are_plotted() -> None:
    """The function, the polynomial and its interval; outside of it the polynomial goes where it will."""
    for fitted, function in (
        (sd.fit(np.tanh, (-4, 4), degree=7), np.tanh),
        (sd.fit(lambda t: t**4, (0, 1), degree=3), lambda t: t**4),
        (sd.fit(np.sign, [(-1, -0.1), (0.1, 1)], degree=7), np.sign),
    ):
        above, below = fitted.plot().figure.axes
        lines = {line.get_label(): line for line in above.get_lines()}
        inside = lines["polynomial"].get_xdata()
        assert (inside[0], inside[-1]) == fitted.interval
        np.testing.assert_allclose(lines["polynomial"].get_ydata(), fitted.chebyshev(inside))
        around = lines["function"].get_xdata()
        assert around[0] < inside[0]
        np.testing.assert_allclose(lines["function"].get_ydata(), [function(t) for t in around])
        assert f"{fitted.error:.1e}" in below.get_legend().get_texts()[0].get_text()
        assert below.get_ylabel() == "distance (logarithmic)"
    # What has no value there is not drawn.
    checked(sd.fit(np.log, (0.1, 1), degree=5).plot()._repr_html_())


def test_names_are_escaped() -> None:
    from sudare import _html

    evil: dict[str, Any] = {HOSTILE: sd.spec((2, 2))}
    plan = sd.plan(lambda **x: x[HOSTILE] @ np.eye(2), error=1e-3, **evil)
    for content in (
        plan._repr_html_(),
        plan.plot()._repr_html_(),
        _html.card(HOSTILE, _html._amounts([(HOSTILE, 1.0)])),
    ):
        assert "<script" not in content
        checked(content)


def test_pictures(shown: dict[str, Any], tmp_path: Path) -> None:
    """Each object as a browser draws it. SUDARE_PICTURES names a folder that keeps the pictures."""
    if BROWSER is None:
        pytest.skip("no browser: install chromium to see what notebooks show")
    keep = os.environ.get("SUDARE_PICTURES")
    for name in ("plan", "context", "encrypted", "table", "statistics", "server", "bits-array"):
        page, picture = tmp_path / f"{name}.html", tmp_path / f"{name}.png"
        body = shown[name]._repr_html_()
        page.write_text(f'<!DOCTYPE html><meta charset="utf-8"><body style="margin:12px">{body}')
        command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += [f"--user-data-dir={tmp_path / 'profile'}", "--window-size=760,620"]
        done = subprocess.run(
            [*command, f"--screenshot={picture}", page.as_uri()],
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert picture.exists(), done.stderr.decode()[-2000:]
        image = np.asarray(matplotlib.image.imread(picture))[..., :3]
        assert 0.5 < (image == 1.0).all(axis=-1).mean() < 0.995, f"{name} is blank, or black"
        if keep:
            shutil.copy(picture, Path(keep) / f"{name}.png")


def test_progress_in_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    from sudare import _progress

    seen: list[str] = []

    class Handle:
        def update(self, content: str) -> None:
            seen.append(content)

    def display(content: str, display_id: bool) -> Handle:
        seen.append(content)
        return Handle()

    shell = type("ZMQInteractiveShell", (), {})()
    ipython, shows = ModuleType("IPython"), SimpleNamespace(HTML=str, display=display)
    monkeypatch.setattr(ipython, "get_ipython", lambda: shell, raising=False)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", shows)
    monkeypatch.setattr(_progress, "PATIENCE", 0.0)
    ctx = sd.bits(parameters="insecure_test", threads=1)
    seen.clear()
    _ = ctx.encrypt(np.arange(40, dtype=np.uint8)) > 3
    assert any(re.search(r"greater <progress value=", line) for line in seen)
    assert seen[-1] == ""
    seen.clear()
    with _progress.clock(HOSTILE, 1.0):
        with _progress.progress("inside") as inner:
            assert inner is None
        import time

        time.sleep(0.3)
    assert any("&lt;script" in line for line in seen)
    assert not any("<script" in line for line in seen)


def test_plans_and_products_have_a_bar(product: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    from sudare import _matrix, _plan, _progress

    titles: list[str] = []
    real = _progress.clock

    def noted(title: str, seconds: float | None = None) -> Any:
        titles.append(title)
        return real(title, seconds)

    monkeypatch.setattr(_plan, "clock", noted)
    monkeypatch.setattr(_matrix, "clock", noted)
    _, client, _ = product
    sd.plan(lambda A: A.T, A=sd.spec((2, 3)), error=1e-3)
    x, y = client.encrypt(np.eye(5, 7), "A"), client.encrypt(np.eye(7, 3), "B")
    _ = x @ y
    assert titles == ["planning", "multiplying"]
    monkeypatch.setattr(_progress, "LONG", 1e-9)
    with pytest.warns(sd.CostWarning, match="this product"):
        _ = x @ y
