"""Encrypted booleans and integers in Python: one build of the package beside another, in turn.

    python bench/bits.py --before FOLDER --after FOLDER [--threads 1,2] [--least 5] [--only TEXT]
        [--save FILE]

Each folder holds a package `sudare` with its extension module, as an unpacked release wheel does. Both
run in processes of their own, which work one after the other, case by case; every answer is checked.
`cpu_ms` is the processor time of all threads: what the work itself took where others load the machine.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from machine import processor

# Name, the set before, the set after, and what is timed of (operands, module).
CASES: list[tuple[str, str, str]] = [
    ("one AND", "bools1", "x & y"),
    ("16 ANDs", "bools16", "x & y"),
    ("16 choices", "bools16", "sd.where(x, y, z)"),
    ("any of 64 booleans", "bools64", "x.any()"),
    ("any of 64 booleans, set of integers", "flags64", "x.any()"),
    ("100 8-bit sums", "bytes100", "x + y"),
    ("100 8-bit sums, carries propagated", "bytes100", "settled(x + y)"),
    ("25 8-bit sums of four, carries propagated", "bytes25", "settled(x + y + z + x)"),
    ("the sum of 100 bytes, of 8 bits", "bytes100", "x.sum(dtype='uint8')"),
    ("the sum of 8 bytes, as NumPy types it", "bytes8", "x.sum()"),
    ("8 8-bit sums, then compared twice", "bytes8", "[s := x + y, s < z, s > z][-1]"),
]
DEFAULT = "message_2_carry_2"


def worker(folder: str, gates: str, threads: int) -> None:
    """Answers cases by their numbers, read line by line, with milliseconds."""
    sys.path.insert(0, folder)
    import numpy as np
    import sudare as sd

    rng = np.random.default_rng(1)
    contexts: dict[str, Any] = {}
    operands: dict[str, tuple[Any, Any]] = {}
    for line in sys.stdin:
        _, kind, expression = CASES[int(line)]
        name = gates if kind.startswith("bools") else DEFAULT
        if name not in contexts:
            contexts[name] = sd.bits(parameters=name, threads=threads)
        ctx = contexts[name]
        if kind not in operands:
            count = int("".join(c for c in kind if c.isdigit()))
            if kind.startswith("bytes"):
                plain = [rng.integers(0, 256, count).astype("uint8") for _ in range(3)]
            else:
                plain = [rng.integers(0, 2, count).astype(bool) for _ in range(3)]
            operands[kind] = ([ctx.encrypt(p) for p in plain], plain)
        encrypted, plain = operands[kind]
        # Copies that remember nothing.
        fresh = [x[...] for x in encrypted]
        scope = {"sd": sd, "settled": lambda x: x.settle() if hasattr(x, "settle") else x}
        scope |= dict(zip("xyz", fresh, strict=True))
        wall, cpu = time.perf_counter(), time.process_time()
        found = eval(expression, scope)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        expected = eval(
            expression, {"sd": np, "settled": lambda x: x, **dict(zip("xyz", plain, strict=True))}
        )
        right = bool((ctx.decrypt(found) == expected).all())
        print(json.dumps({"ms": 1e3 * wall, "cpu_ms": 1e3 * cpu, "right": right}), flush=True)


class Side:
    """A build in a process of its own."""

    def __init__(self, folder: str, gates: str, threads: int) -> None:
        command = [sys.executable, __file__, "--worker", folder, gates, str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, case: int) -> dict[str, Any]:
        """Times a case once."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(case, file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())  # type: ignore[no-any-return]

    def close(self) -> None:
        """Ends the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def main() -> int:
    """Measures every case, by both builds in turn."""
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[2], sys.argv[3], int(sys.argv[4]))
        return 0
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", required=True, help="the folder of the build to compare with")
    parser.add_argument("--after", required=True, help="the folder of the build to judge")
    parser.add_argument("--before-gates", default=DEFAULT, help="the set for booleans of the former")
    parser.add_argument("--after-gates", default="gates", help="the set for booleans of the latter")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--least", type=int, default=5, help="samples of a case")
    parser.add_argument("--only", default="", help="cases whose names begin so")
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    lines = []
    wrong = 0
    for threads in map(int, options.threads.split(",")):
        sides = {
            "before": Side(options.before, options.before_gates, threads),
            "after": Side(options.after, options.after_gates, threads),
        }
        for number, (name, _, _) in enumerate(CASES):
            if not name.startswith(options.only):
                continue
            samples: dict[str, list[dict[str, Any]]] = {side: [] for side in sides}
            for round_ in range(options.least + 1):
                for side, made in sides.items():
                    sample = made.run(number)
                    wrong += not sample["right"]
                    # The first makes keys and warms caches.
                    if round_:
                        samples[side].append(sample)
            line: dict[str, Any] = {"case": name, "threads": threads}
            for key in ("ms", "cpu_ms"):
                for side in sides:
                    line[f"{side}_{key}"] = round(median(s[key] for s in samples[side]), 3)
                line[f"ratio_{key}"] = round(line[f"before_{key}"] / line[f"after_{key}"], 2)
            line["samples"] = options.least
            lines.append(line)
            print(json.dumps(line), flush=True)
        for made in sides.values():
            made.close()
    if options.save:
        about = {
            "suite": "bits",
            "date": datetime.date.today().isoformat(),
            "machine": platform.machine(),
            "processor": processor(),
            "wrong": wrong,
        }
        options.save.write_text("".join(json.dumps(line) + "\n" for line in [about, *lines]))
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
