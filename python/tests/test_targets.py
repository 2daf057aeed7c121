"""Every `make TARGET` that a document or a workflow names is a target of the Makefile, and is in its list."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Notes and the changelog tell of the past.
DOCUMENTS = sorted(
    path
    for pattern in (
        "*.md",
        "docs/*.md",
        "docs/explained/*.md",
        "docs/internals/*.md",
        "docs/guide/**/*.md",
        "bench/*.md",
        ".github/**/*.yml",
        ".github/**/*.md",
    )
    for path in ROOT.glob(pattern)
    if path.name != "CHANGELOG.md"
)
FENCE = re.compile(r"^ *```\w*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"^ *make((?: [\w.=*/$…-]+)+)", re.MULTILINE)
INLINE = re.compile(r"(?:`|run: )make((?: [\w.=*/$…-]+)+)")
LISTED = set(
    re.findall(r"^([a-z0-9-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
)


def named(text: str) -> set[str]:
    """The targets that a text asks for: on lines of code, in back quotes, and as the step of a job."""
    found = [*LINE.findall("\n".join(FENCE.findall(text))), *INLINE.findall(text)]
    return {word for words in found for word in words.split() if "=" not in word}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_named_is_there(document: Path) -> None:
    assert named(document.read_text(encoding="utf-8")) <= LISTED


def test_all_kinds_of_mention_are_found() -> None:
    text = "`make a b=1 c` and\nmake prose\n```sh\nmake d   # why\n```\n      - run: make e F=dist/*.whl\n"
    assert named(text) == {"a", "c", "d", "e"}
    found = [named(path.read_text(encoding="utf-8")) for path in DOCUMENTS]
    assert {"demo", "test", "msrv", "deny", "semver"} <= set().union(*found)


def test_the_list_has_every_target_in_a_group() -> None:
    if shutil.which("make") is None:
        pytest.skip("make is not here")
    command = ["make", "--no-print-directory", "help"]  # also beneath another make
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"^  make (\S+)", said, re.MULTILINE)) == LISTED
    assert said.startswith("Begin here\n")
