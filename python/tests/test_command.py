"""The command beside the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import sudare as sd


def run(*words: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command as a module."""
    return subprocess.run(
        [sys.executable, "-m", "sudare", *words], cwd=folder, capture_output=True, text=True, check=False
    )


def test_help_and_version() -> None:
    shown = run("--help")
    assert shown.returncode == 0
    assert "encrypt" in shown.stdout
    assert run("--version").stdout.strip() == f"sudare {sd.__version__}"
    assert run().returncode == 2
    assert run("info", "nowhere").returncode == 7


def test_files_of_both(tmp_path: Path) -> None:
    """The command reads what the package saved, and the package what the command wrote."""
    plan = sd.plan(lambda A: A.sum(axis=0), A=sd.spec((3, 2)), error=1e-4)
    client = sd.Client(plan, threads=1)
    plan.save(tmp_path / "plan.json")
    client.save(tmp_path / "secret.key")
    client.server().save(tmp_path / "eval.keys")
    values = np.array([[0.5, -1], [0.25, 0.5], [0, 0.125]])
    np.save(tmp_path / "a.npy", values)
    for words in (
        "encrypt plan.json --keys secret.key --as A a.npy -o a.ct",
        "run plan.json --keys eval.keys a.ct -o s.ct",
    ):
        done = run(*words.split(), folder=tmp_path)
        assert done.returncode == 0, done.stderr
    found = client.decrypt(sd.load(tmp_path / "s.ct", client))
    assert np.abs(found - values.sum(axis=0)).max() < 1e-4
    assert "1×2" in run("info", "s.ct", folder=tmp_path).stdout

    bits = sd.BitsClient(parameters="insecure_test", threads=1)
    bits.save(tmp_path / "bits.key")
    bits.encrypt(np.array([-3, 7], np.int16)).save(tmp_path / "x.ct")
    done = run("bits", "decrypt", "--keys", "bits.key", "x.ct", "-o", "-", folder=tmp_path)
    assert done.stdout == "-3\n7\n", done.stderr
