"""What a notebook shows, rendered by a browser where there is one."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sudare as sd
from conftest import Session
from numpy.typing import NDArray

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
            *("div", "table", "thead", "tbody", "tr", "td", "th", "svg", "rect", "text", "title"),
            *("g", "circle", "path"),
        }, tag
        for name, value in attrs:
            assert not name.startswith("on"), name
            assert "javascript:" not in (value or "")
            assert "url(" not in (value or "")
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
    """Levels, memory and alternatives, with the plan's own figures; and a file of it."""
    plan, picture = shown["plan"], shown["plan"].plot()
    text = checked(picture._repr_html_())
    for words in (
        "levels of the operands",
        "memory of the server",
        "considered",
        "result",
    ):
        assert words in text
    assert picture.svg.count("<circle") == len([p for p in plan.considered if p["seconds"] > 0])
    for operand in plan.summary["operands"]:
        assert f"±{operand['max_abs']:.3g}" in text
    picture.save(tmp_path / "plan.svg")
    for name in ("plan.png", "plan.pdf", "plan.svgz"):
        with pytest.raises(sd.InputError, match=r"'plan\.svg'"):
            picture.save(tmp_path / name)
        assert not (tmp_path / name).exists()
    assert (tmp_path / "plan.svg").read_text(encoding="utf-8") == picture.svg
    assert "key of products" not in text
    other = sd.plan(lambda A: A * A, A=sd.spec((5, 7)), error=1e-9)
    assert "key of products" in other.plot().svg


def test_names_are_escaped() -> None:
    from sudare import _html

    evil: dict[str, Any] = {HOSTILE: sd.spec((2, 2))}
    plan = sd.plan(lambda **x: x[HOSTILE] @ np.eye(2), error=1e-3, **evil)
    for content in (
        plan._repr_html_(),
        plan.plot().svg,
        _html.card(HOSTILE, _html._bars([(HOSTILE, 1.0, "red")])),
    ):
        assert "<script" not in content
        checked(content)


def pixels(data: bytes) -> NDArray[np.uint8]:
    """A picture of 8-bit channels, rows of colours."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, parts, head = 8, b"", (0, 0, 0, 0)
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        head = struct.unpack(">IIBB", body[:10]) if kind == b"IHDR" else head
        parts += body if kind == b"IDAT" else b""
        at += 12 + length
    width, height, depth, colour = head
    assert depth == 8
    channels = {2: 3, 6: 4}[colour]
    raw = zlib.decompress(parts)
    stride = channels * width
    out = np.zeros((height, stride), np.int64)
    for y in range(height):
        line = np.frombuffer(raw, np.uint8, stride, y * (stride + 1) + 1).astype(np.int64)
        how, above = raw[y * (stride + 1)], out[y - 1] if y else np.zeros(stride, np.int64)
        if how == 1:
            for c in range(channels):
                out[y, c::channels] = np.cumsum(line[c::channels])
        elif how == 2:
            out[y] = line + above
        elif how:
            row = out[y]
            for x in range(stride):
                left = int(row[x - channels]) if x >= channels else 0
                corner = int(above[x - channels]) if x >= channels else 0
                up = int(above[x])
                near = left + up - corner
                paeth = min((left, up, corner), key=lambda v, n=near: abs(n - v))  # type: ignore[misc]
                row[x] = (line[x] + ((left + up) // 2 if how == 3 else paeth)) & 255
        else:
            out[y] = line
        out[y] &= 255
    return out.reshape(height, width, channels)[..., :3].astype(np.uint8)


def test_pictures(shown: dict[str, Any], tmp_path: Path) -> None:
    """Each object as a browser draws it. SUDARE_PICTURES names a folder that keeps the pictures."""
    if BROWSER is None:
        pytest.skip("no browser: install chromium to see what notebooks show")
    drawn = {
        "plan": "#b44d12 #2b6cb0 #2f855a",
        "context": "#b44d12",
        "encrypted": "#2f855a",
        "table": "#b44d12 #2b6cb0",
        "statistics": "",
        "server": "#b44d12",
        "bits-array": "",
    }
    keep = os.environ.get("SUDARE_PICTURES")
    for name, colours in drawn.items():
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
        image = pixels(picture.read_bytes()).reshape(-1, 3)
        assert 0.5 < (image == 255).all(axis=1).mean() < 0.995, f"{name} is blank, or black"
        for colour in colours.split():
            if colour == "#b44d12" and name == "plan":
                continue  # a plan without keys has a hair's breadth of it
            wanted = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])
            assert (image == wanted).all(axis=1).sum() > 30, f"{name} shows no {colour}"
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
    assert any(re.search(r"greater <progress value=.* 40/40", line) for line in seen)
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
