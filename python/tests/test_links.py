"""Links in documents lead to files that exist, and to headings that these files have."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATTERNS = (
    "*.md",
    "docs/**/*.md",
    "crates/*/README.md",
    "bench/*.md",
    "submissions/**/*.md",
    ".github/**/*.md",
)
DOCUMENTS = sorted(path for pattern in PATTERNS for path in ROOT.glob(pattern))
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)


def anchor(heading: str) -> str:
    """The name that a heading has in a link: lower case, hyphens for blanks, no punctuation."""
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(text: str) -> set[str]:
    """The names of all headings of a document, without those that are lines of code."""
    blocks = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
    return {anchor(heading) for heading in HEADING.findall(blocks.sub("", text))}


def broken(path: Path, text: str) -> list[str]:
    """The links of a document that lead nowhere."""
    wrong = []
    for target, name in LINK.findall(CODE.sub("", text)):
        if re.match(r"[a-z]+:", target):
            continue
        file = (path.parent / target).resolve() if target else path
        if not file.exists():
            wrong.append(target)
        elif name and file.suffix == ".md" and name not in anchors(file.read_text(encoding="utf-8")):
            wrong.append(f"{target}#{name}")
    return wrong


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    assert not broken(document, document.read_text(encoding="utf-8"))


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("# A heading, *b*\n```\n# code\n```\n")
    text = "[x](b.md#a-heading-b) [y](b.md#code) [z](c.md) `[q](d.md)` [w](https://e)\n"
    assert broken(tmp_path / "a.md", text) == ["b.md#code", "c.md"]


def rows_without_a_run(text: str) -> list[str]:
    """The rows of tables with a column "Stored run" that have a figure and name no file of `bench/runs`."""
    wrong: list[str] = []
    heading = ""
    for line in text.splitlines():
        if not line.startswith("|"):
            heading = ""
        elif not heading:
            heading = line
        elif (
            "Stored run" in heading and re.search(r"\d", line.split("|", 2)[2]) and "bench/runs/" not in line
        ):
            wrong.append(line)
    return wrong


@pytest.mark.parametrize("document", ["README.md", "docs/speed.md"])
def test_figures_name_their_run(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    assert "| Stored run" in text
    assert not rows_without_a_run(text)


def test_a_figure_without_a_run_is_found() -> None:
    head = "| Task | Sudare | Stored run |\n|---|---|---|\n"
    assert rows_without_a_run(head + "| a | 1 ms | |\n| b | | |\n| c | 2 s | [x](bench/runs/x.json) |\n") == [
        "| a | 1 ms | |"
    ]
