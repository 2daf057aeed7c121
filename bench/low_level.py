"""Operations of CKKS from Python beside the same from Rust, in turn: what the way through Python costs.

    python bench/low_level.py --bench target/release/sudare-bench [--rounds 5] [--seconds 2]
        [--threads 1] [--most 1.05] [--save FILE]

Rust is the suite `ops` of a build of `sudare-bench`; Python is the package `sudare` of this interpreter, of
the same profile. The set is the paper's, N = 2^14, {60, 40, 40, 40 | 60}. Each round runs both, and the one
that goes first changes every round. Every answer is checked. Times are processor times of all threads; the
figure is the median over the rounds of Python's over Rust's. The exit code is 1 if one passes `--most`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from machine import processor

CASES = ("rotate", "mul + relin + rescale")


def rust(options: argparse.Namespace) -> dict[str, float]:
    """Milliseconds of each case from Rust."""
    words = ["--json", "--seconds", str(options.seconds), "--threads", str(options.threads)]
    command = [options.bench, *words, "ops", "--only", ",".join(CASES)]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    lines = [json.loads(line) for line in out.splitlines()]
    found = {line["case"]: line for line in lines if line["case"] in CASES}
    for case in CASES:
        if found[case]["check"] != "ok" or found[case]["n"] != 1 << 14:
            sys.exit(f"{case}: {found[case]}")
    return {case: found[case]["cpu_ms"] for case in CASES}


def python(options: argparse.Namespace) -> dict[str, float]:
    """The same from Python, in a process of its own."""
    words = [sys.executable, __file__, "--worker", "--seconds", str(options.seconds)]
    command = [*words, "--threads", str(options.threads)]
    found: dict[str, float] = json.loads(
        subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    )
    return found


def worker(seconds: float, threads: int) -> dict[str, float]:
    """Measures the cases in this process."""
    import numpy as np
    from sudare import ckks

    params = ckks.Params(log_n=14, q_bits=[60, 40, 40, 40], p_bits=[60], log_scale=40)
    secret = ckks.SecretKey.generate(params)
    keys = ckks.KeyGenerator(secret).eval_keys(params.max_level, steps=[1])
    encoder, encryptor = ckks.Encoder(params), ckks.Encryptor.with_secret_key(secret)
    x, y = np.random.default_rng(1).uniform(-1, 1, (2, params.slots))
    a, b = (encryptor.encrypt(encoder.encode(v, 1.0)) for v in (x, y))
    server = ckks.Evaluator(params, keys, threads=threads)
    works: dict[str, tuple[Any, Any]] = {
        CASES[0]: (lambda: server.rotate(a, 1), np.roll(x, -1)),
        CASES[1]: (lambda: server.mul_rescale(a, b), x * y),
    }
    found = {}
    for case, (work, wanted) in works.items():
        c = work()
        if not ckks.Decryptor(secret).error(c, wanted) <= c.error_bound < 1e-6:
            sys.exit(f"{case}: a wrong answer")
        times, end = [], time.perf_counter() + seconds
        while time.perf_counter() < end or len(times) < 5:
            before = time.process_time_ns()
            work()
            times.append((time.process_time_ns() - before) / 1e6)
        found[case] = median(times)
    return found


def main() -> None:
    """Measures in turn, prints a table, and keeps the run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bench", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--most", type=float, default=1.05)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(worker(options.seconds, options.threads)))
        return
    if options.bench is None:
        parser.error("--bench names a build of sudare-bench")
    rounds = []
    for i in range(options.rounds):
        sides = (rust, python) if i % 2 == 0 else (python, rust)
        rounds.append({side.__name__: side(options) for side in sides})
    lines = []
    for case in CASES:
        times = {side: [r[side][case] for r in rounds] for side in ("rust", "python")}
        ratio = median(p / r for p, r in zip(times["python"], times["rust"], strict=True))
        lines.append({"case": case, "ratio": ratio, "cpu_ms": times})
        shown = {side: median(all_times) for side, all_times in times.items()}
        print(
            f"{case:24} Rust {shown['rust']:8.3f} ms   Python {shown['python']:8.3f} ms   ratio {ratio:.3f}"
        )
    if options.save:
        day, machine = str(datetime.date.today()), processor()
        run = {
            "suite": "low-level",
            "threads": options.threads,
            "machine": machine,
            "day": day,
            "lines": lines,
        }
        options.save.write_text(json.dumps(run, indent=1) + "\n")
    sys.exit(any(line["ratio"] > options.most for line in lines))


if __name__ == "__main__":
    main()
