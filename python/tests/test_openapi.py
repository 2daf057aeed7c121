"""What `sudare serve` answers to anything that its own description allows, and to what it does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import sudare as sd
from conftest import serving

pytest.importorskip("schemathesis")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """An address and a token."""
    with serving(tmp_path_factory.mktemp("openapi")) as known:
        yield known


def fuzz(url: str, token: str, folder: Path, *more: str) -> None:
    """No answer of status 500, none of another status, type or form than `openapi.json` says."""
    checks = (
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_schema_conformance",
    )
    examples = "400" if "SUDARE_SOAK" in os.environ else "15"
    program = [str(Path(sys.executable).parent / "schemathesis"), *more, "run", f"{url}/openapi.json"]
    program += ["--header", f"Authorization: Bearer {token}", "--checks", ",".join(checks)]
    program += ["--max-examples", examples, "--phases", "coverage,fuzzing", "--request-timeout", "40"]
    if more:
        program += ["--include-method", "GET", "--include-method", "HEAD"]
    done = subprocess.run(
        program, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-8000:]
    assert "Tested:" in done.stdout


def test_every_answer_is_one_that_is_described(served: tuple[str, str], tmp_path: Path) -> None:
    """Anything for everything: most of what is asked for is not there."""
    fuzz(*served, tmp_path)


def test_answers_about_what_is_there(served: tuple[str, str], tmp_path: Path) -> None:
    """An object, and a job that is done, with every header and query that the description allows."""
    remote = sd.remote(served[0], token=served[1])
    small = sd.spec((2, 2), dtype=int, max_abs=9)
    plan = sd.plan(lambda A, B: A @ B, A=small, B=small)
    client = sd.Client(plan)
    remote.server(client)
    ones = np.ones((2, 2), dtype=int)
    assert np.array_equal(client.decrypt(client.encrypt(ones, "A") @ client.encrypt(ones, "B")), ones @ ones)
    asked = urllib.request.Request(f"{served[0]}/v1/jobs", headers={"Authorization": f"Bearer {served[1]}"})
    with urllib.request.urlopen(asked) as answer:
        [job] = json.load(answer)
    parameters = f'[parameters]\n"path.digest" = "{job["result"]}"\n"path.id" = "{job["id"]}"\n'
    (tmp_path / "schemathesis.toml").write_text(parameters)
    fuzz(*served, tmp_path, "--config-file", str(tmp_path / "schemathesis.toml"))
