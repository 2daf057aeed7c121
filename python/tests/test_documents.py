"""The code of README.md and the guide runs as printed, prints what a page shows, and agrees with NumPy."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import sudare as sd

ROOT = Path(__file__).parents[2]
COMMAND = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "debug" / "sudare"
GUIDE = ROOT / "docs" / "guide"
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "docs" / "compare.md",
    *sorted((ROOT / "docs" / "explained").glob("*.md")),
    *sorted(GUIDE.rglob("*.md")),
]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(document: Path, language: str) -> list[tuple[int, str]]:
    """The code blocks of a language, each with the line that it starts after."""
    text = document.read_text(encoding="utf-8")
    return [
        (text[: m.start()].count("\n") + 1, m.group(2))
        for m in FENCE.finditer(text)
        if m.group(1) == language
    ]


def outputs(document: Path) -> dict[int, str]:
    """What a page says that a block prints, by the line that the block starts after."""
    text = document.read_text(encoding="utf-8")
    shown = re.compile(r"^```python\n((?:(?!^```).)*?)^```\n\nOutput:\n\n```text\n(.*?)^```$", re.M | re.S)
    return {text[: m.start()].count("\n") + 1: m.group(2) for m in shown.finditer(text)}


def shows(shown: str, printed: str) -> bool:
    """Whether lines were printed; a line `…` stands for any lines."""
    lines = [".*" if line == "…" else re.escape(line) for line in shown.rstrip("\n").split("\n")]
    return re.fullmatch("\n".join(lines), printed.rstrip("\n"), re.DOTALL) is not None


def test_another_output_is_found() -> None:
    assert shows("a\n…\n", "a\nb\nc\n")
    assert not shows("a\n", "a\nb\n")
    assert len([shown for document in DOCUMENTS for shown in outputs(document)]) >= 3


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.name)
def test_python(document: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The blocks of a document run in turn, as a reader would type them, in a folder beside `data`."""
    found = blocks(document, "python")
    if any('"sudare"' in code for _, code in found) and not COMMAND.exists():
        pytest.skip("the command is not built")
    monkeypatch.setenv("PATH", f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    # Rust examples run with the tests of the crate that the page is about.
    assert found or blocks(document, "rust") or blocks(document, "sh"), (
        "a document of the guide without an example"
    )
    names: dict[str, object] = {"__name__": "__main__"}
    wanted = outputs(document)
    for line, code in found:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile("\n" * line + code, str(document), "exec"), names)
        assert line not in wanted or shows(wanted[line], printed.getvalue()), printed.getvalue()


@pytest.mark.parametrize(
    "document", [*DOCUMENTS, *(ROOT / "python" / "examples").glob("*.py")], ids=lambda d: d.name
)
def test_nothing_is_unpickled(document: Path) -> None:
    """A reader who copies an example runs nobody's code: what crosses between parties goes as bytes."""
    text = document.read_text(encoding="utf-8")
    code = "\n".join(c for _, c in blocks(document, "python")) if document.suffix == ".md" else text
    assert not re.search(r"pickle\.loads?\b|Unpickler|\.recv\(\)", code)


def test_regression(monkeypatch: pytest.MonkeyPatch) -> None:
    """The example on real data, on a part of it and a small ring; it exits where NumPy disagrees."""
    monkeypatch.syspath_prepend(str(ROOT / "python" / "examples"))
    importlib.import_module("regression").main(
        ["--try", "--rows", "90", "--iterations", "3", "--threads", "2"]
    )


def test_learning(monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of fits on encrypted rows; it exits where labels are not those of a fit in the clear."""
    monkeypatch.syspath_prepend(str(ROOT / "python" / "examples"))
    importlib.import_module("learning").main()


COMMANDS = [
    (d, line, code)
    for d in DOCUMENTS
    for line, code in blocks(d, "sh")
    if code.startswith("sudare ") and " c.npy" in code
]


def commands(code: str, folder: Path) -> str:
    """Runs a block of commands in a folder; gives what it prints."""
    if not COMMAND.exists():
        pytest.skip("the command is not built")
    env = {**os.environ, "PATH": f"{COMMAND.parent}{os.pathsep}{os.environ['PATH']}"}
    run = ["sh", "-eu", "-c", code]
    done = subprocess.run(
        run, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize(("document", "line", "code"), COMMANDS, ids=lambda x: getattr(x, "name", ""))
def test_commands(document: Path, line: int, code: str, tmp_path: Path) -> None:
    """Blocks of `sudare` commands run in a folder with a.npy and b.csv, and leave c.npy, their product."""
    rng = np.random.default_rng(line)
    a, b = rng.uniform(-10, 10, (20, 6)), rng.uniform(-10, 10, (6, 4))
    np.save(tmp_path / "a.npy", a)
    np.savetxt(tmp_path / "b.csv", b, delimiter=",")
    commands(code, tmp_path)
    assert np.abs(np.load(tmp_path / "c.npy") - a @ b).max() < 1e-4


def test_tables_and_integers_at_the_command_line(tmp_path: Path) -> None:
    """The page on the command: a compact plan, statistics with names, an exact product, bits."""
    [_, (_, kept), (_, compact), (_, table), (_, integers)] = blocks(
        GUIDE / "1-begin/05-command-line.md", "sh"
    )
    assert "exit code 2" in commands(kept, tmp_path)
    assert "Exit codes" in (tmp_path / "man1" / "sudare.1").read_text()
    commands(compact, tmp_path)
    small = sd.load(tmp_path / "compact.json").summary["operands"][-1]
    assert small["parts"] == 2
    rng = np.random.default_rng(11)
    people = rng.uniform(1, 120, (5, 3))
    rows = [f"p{i};" + ";".join(map(str, row)) for i, row in enumerate(people)]
    (tmp_path / "people.csv").write_text("\n".join(["# by hand", "name;height;weight;age", *rows]))
    commands(table, tmp_path)
    lines = [line.split(",") for line in (tmp_path / "moments.csv").read_text().splitlines()]
    assert lines[0][1:] == ["height", "weight", "age"]
    assert [line[0] for line in lines[1:]] == ["mean", "height", "weight", "age"]
    found = np.array([line[1:] for line in lines[1:]], float)
    assert np.abs(found[0] - people.mean(axis=0)).max() < 1e-2
    assert np.abs(found[1:] - np.cov(people, rowvar=False)).max() < 1

    p, q = rng.integers(-(10**9), 10**9, (2, 3)), rng.integers(-(10**9), 10**9, (3, 2))
    for name, x in {"p": p, "q": q}.items():
        np.savetxt(tmp_path / f"{name}.csv", x, fmt="%d", delimiter=",")
    commands(integers, tmp_path)
    exact = [[int(x) for x in line.split(",")] for line in (tmp_path / "pq.csv").read_text().splitlines()]
    assert exact == (p.astype(object) @ q.astype(object)).tolist()
    assert np.array_equal(np.loadtxt(tmp_path / "large.csv", delimiter=","), p > 500)


def test_genome_commands(tmp_path: Path) -> None:
    """The page on genome searches: its commands in a folder with the files of data/genome."""
    shutil.copytree(ROOT / "data" / "genome", tmp_path, dirs_exist_ok=True)
    [(_, code)] = blocks(GUIDE / "3-integers-bits-search/04-genome.md", "sh")
    heading, row = (line.split("\t") for line in commands(code, tmp_path).splitlines()[-2:])
    found = dict(zip(heading, row, strict=True))
    panel = sd.genome.Panel.open(tmp_path / "panel")
    window = panel.sites.window("20:1100000-1105000")
    symbols = panel.sites.symbols(tmp_path / "others.vcf.gz", "NA06994", 2, window)
    assert found["sample"] == "NA06994"
    assert int(found["matched_sites"]) == panel.longest(window.start, symbols)[0]


def test_the_site_has_every_page() -> None:
    """Pages of the guide are in the site's list of contents, in the order of their names."""
    contents = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^(guide/.+)$", contents, re.MULTILINE)
    assert listed == sorted(str(p.relative_to(ROOT / "docs").with_suffix("")) for p in GUIDE.rglob("*.md"))


def test_search_commands(tmp_path: Path) -> None:
    """The page on encrypted search: its commands on a table of 300 vectors, one of which comes twice."""
    rng = np.random.default_rng(3)
    faces = rng.standard_normal((300, 64)).astype("f4")
    faces[200] = faces[7]
    np.save(tmp_path / "faces.npy", faces)
    np.save(tmp_path / "question.npy", faces[7:8])
    [(_, code)] = blocks(GUIDE / "3-integers-bits-search/03-search.md", "sh")
    assert commands(code, tmp_path).splitlines()[-1] == "2"


def test_administration_commands(tmp_path: Path) -> None:
    """The page for administrators: tokens, a reload, a log that is moved away, a backup that is restored."""
    [(_, code)] = blocks(GUIDE / "4-operating/02-administration.md", "sh")
    printed = commands(code, tmp_path)
    assert "ward-3" in printed
    assert "2999-01-31" in printed
    assert printed.splitlines()[-1] == "restored"
    assert "archive" not in (tmp_path / "tokens").read_text()
    assert (tmp_path / "log").stat().st_size
    assert (tmp_path / "log.1").stat().st_size


def test_the_reference_has_every_name() -> None:
    """What the package offers is in the reference that the site makes of docstrings."""
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\.\. auto\w+:: sudare\.(\w+)$", page, re.MULTILINE))
    assert listed == set(sd.__all__) - {"__version__"}
    undocumented = [name for name in listed if not getattr(sd, name).__doc__]
    assert not undocumented
