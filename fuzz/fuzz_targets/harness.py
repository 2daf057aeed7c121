"""Runs a target in Python by atheris: harness.py TARGET [libFuzzer's arguments]."""

from __future__ import annotations

import importlib
import os
import resource
import sys
from pathlib import Path

import atheris

# Most bytes of address space beside what an interpreter with NumPy has.
MEMORY = 2 << 30
# What is measured by its coverage.
INSTRUMENTED = ["sudare", "http.client", "zipfile", "json", "numpy.lib"]


def main() -> None:
    """Runs until libFuzzer's arguments say that it ends."""
    with atheris.instrument_imports(include=INSTRUMENTED):
        target = importlib.import_module(sys.argv.pop(1))
    if folder := os.environ.get("FUZZ_CORPUS"):
        for at, seed in enumerate(target.seeds()):
            (Path(folder) / f"seed-{at}").write_bytes(seed)

    def mutated(data: bytes, most: int, seed: int) -> bytes:
        changed = target.mutate(data, seed) if seed % 3 else atheris.Mutate(data, len(data))
        return bytes(changed[:most])

    def check(data: bytes) -> None:
        target.check(bytes(data))

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    atheris.Setup(sys.argv, check, custom_mutator=mutated)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
