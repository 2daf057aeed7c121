"""What comparisons with packages share: a process for each package and piece of work, and a file of lines.

`peers.py` and `models_peers.py` say what is measured, and how their environments are made.
"""

import argparse
import importlib.util
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from machine import processor

STAGES = ("parameters", "keys", "encrypt", "compute", "decrypt")


def taken(values: list[Any]) -> list[Any]:
    """What a stage takes: parameters, keys and the value of the stage before."""
    return values[:2] + values[-1:] if len(values) > 2 else values


@dataclass
class Comparison:
    """Pieces of work in packages.

    `kind` is what a piece is called (a task, a model), `works` its short and its long names, `peers` for each
    module its package. `measure` has the line of a module, a piece and so many rounds; `medians` has a line's
    medians of stages in ms. `most` are seconds for all rounds of a piece.
    """

    script: str
    doc: str
    kind: str
    works: dict[str, str]
    peers: dict[str, str]
    measure: Callable[[str, str, int], dict[str, Any]]
    medians: Callable[[dict[str, Any]], dict[str, float] | None]
    rounds: int
    most: float

    def line(self, python: str, name: str, work: str, asked: argparse.Namespace) -> dict[str, Any]:
        """A line by a process of its own."""
        command = [python, "-W", "ignore", self.script, "--only", name, work, "--rounds", str(asked.rounds)]
        one_thread = {**os.environ, "OMP_NUM_THREADS": "1", "RAYON_NUM_THREADS": "1"}
        try:
            ran = subprocess.run(command, capture_output=True, text=True, timeout=asked.most, env=one_thread)
        except subprocess.TimeoutExpired:
            return {"refused": f"over {asked.most:g} seconds"}
        if ran.returncode:
            return {"refused": (ran.stderr.strip().splitlines() or ["no reason"])[-1]}
        found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
        return found

    def arguments(self) -> argparse.Namespace:
        """Those of the command line."""
        parser = argparse.ArgumentParser(
            description=self.doc, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        parser.add_argument(
            "pythons", nargs="*", default=[sys.executable], help="interpreters of environments with packages"
        )
        parser.add_argument("--rounds", type=int, default=self.rounds)
        parser.add_argument(
            "--most", type=float, default=self.most, help=f"seconds for all rounds of a {self.kind}"
        )
        parser.add_argument(f"--{self.kind}s", dest="works", nargs="*", default=list(self.works))
        parser.add_argument("--commit", default="", help="of this package's wheel")
        parser.add_argument("--save", type=Path)
        parser.add_argument("--only", nargs=2, help=argparse.SUPPRESS)
        parser.add_argument("--has", help=argparse.SUPPRESS)
        return parser.parse_args()

    def run(self) -> None:
        """Runs each piece of work of each package in a process of its own."""
        asked = self.arguments()
        if asked.has:
            print(version(self.peers[asked.has]) if importlib.util.find_spec(asked.has) else "")
            return
        if asked.only:
            print(json.dumps(self.measure(*asked.only, asked.rounds)))
            return
        began, lines = os.getloadavg(), []
        for python in asked.pythons:
            for name in self.peers:
                command = [python, self.script, "--has", name]
                of = subprocess.run(command, capture_output=True, text=True).stdout.strip()
                for work in asked.works if of else []:
                    found = self.line(python, name, work, asked)
                    called = f"{work} {self.works[work]}"
                    lines.append({"package": name, "version": of, self.kind: called, **found})
                    times = self.medians(found)
                    shown = "  ".join(f"{s} {times[s]:.1f}" for s in STAGES) if times else found["refused"]
                    print(f"{name:<8} {called:<45} {shown}", flush=True)
        if asked.save:
            self.save(asked, lines, began)

    def save(self, asked: argparse.Namespace, lines: list[dict[str, Any]], began: tuple[float, ...]) -> None:
        """Writes the lines with their conditions; what the file has of other packages and pieces stays."""
        if asked.save.exists():
            measured = {(x["package"], x[self.kind]) for x in lines}
            before = json.loads(asked.save.read_text())["lines"]
            lines = [x for x in before if (x["package"], x[self.kind]) not in measured] + lines
        about = {
            "machine": {"processor": processor(), "processors": os.cpu_count()},
            "load": {"before": began, "after": os.getloadavg()},
            "python": platform.python_version(),
            "threads": 1,
            "commit": asked.commit,
            "rounds": asked.rounds,
        }
        asked.save.write_text(json.dumps({**about, "lines": lines}, indent=1) + "\n")
