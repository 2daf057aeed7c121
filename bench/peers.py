r"""Tasks of `docs/compare.md` here and in packages that install from PyPI, timed and checked against NumPy.

    python -m venv peers && peers/bin/pip install numpy tenseal==0.3.18 dist/sudare-….whl
    peers/bin/python bench/peers.py --commit HASH --save bench/runs/peers-DATE.json

One thread each, a process for each package. A line has the median and all samples of what a user waits for:
keys, encryption, computation and decryption apart, in milliseconds. A package that is not there has no line.
"""

import argparse
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

STAGES = ("keys", "encrypt", "compute", "decrypt")
RNG = np.random.default_rng(0)
A, B = RNG.uniform(-1, 1, (12, 8)), RNG.uniform(-1, 1, (8, 6))
W = RNG.uniform(-1, 1, (8, 6))
TASKS: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "1 product of two encrypted matrices": (lambda x, y: x @ y, [A, B]),
    "2 product with a public matrix": (lambda x: x @ W, [A]),
    "3 sums of columns": (lambda x: x.sum(axis=0), [A]),
}


def here(task: str) -> dict[str, Callable[..., Any]]:
    """The four stages in this package, by a plan."""
    import sudare as sd

    function, given = TASKS[task]
    names = "XY"[: len(given)]
    plan = sd.plan(
        lambda **x: function(*x.values()),
        error=1e-3,
        **{name: sd.spec(m.shape) for name, m in zip(names, given, strict=True)},
    )

    def keys() -> Any:
        client = sd.Client(plan, threads=1)
        client.server()
        return client

    return {
        "keys": keys,
        "encrypt": lambda c: [c.encrypt(m, name) for name, m in zip(names, given, strict=True)],
        "compute": lambda c, x: function(*x),
        "decrypt": lambda c, z: c.decrypt(z),
    }


def tenseal(task: str) -> dict[str, Callable[..., Any]]:
    """The same in TenSEAL, by the parameters of its own tutorials for one product."""
    import tenseal as ts

    _, given = TASKS[task]

    def keys() -> Any:
        context = ts.context(
            ts.SCHEME_TYPE.CKKS, poly_modulus_degree=8192, coeff_mod_bit_sizes=[60, 40, 40, 60], n_threads=1
        )
        context.global_scale = 2**40
        context.generate_galois_keys()
        return context

    def encrypt(context: Any) -> list[Any]:
        # What is summed along its first axis may not be packed along it.
        return [ts.ckks_tensor(context, ts.plain_tensor(m), batch=False) for m in given]

    def compute(_: Any, x: list[Any]) -> Any:
        if task.startswith("3"):
            return x[0].sum(axis=0)
        return x[0].mm(x[1] if len(x) == 2 else ts.plain_tensor(W))

    return {
        "keys": keys,
        "encrypt": encrypt,
        "compute": compute,
        "decrypt": lambda _, z: np.array(z.decrypt().tolist()),
    }


PEERS = {"sudare": here, "tenseal": tenseal}


def timed(stages: dict[str, Callable[..., Any]], wanted: Any, rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each stage; the answer of every round is checked."""
    samples: dict[str, list[float]] = {stage: [] for stage in STAGES}
    for _ in range(rounds):
        values: list[Any] = []
        for stage in STAGES:
            began = time.perf_counter()
            taken = values[:1] if stage in ("keys", "encrypt") else [values[0], values[-1]]
            values.append(stages[stage](*taken))
            samples[stage].append((time.perf_counter() - began) * 1e3)
        if not np.abs(values[-1] - wanted).max() < 1e-3:
            sys.exit("a wrong answer")
    return samples


def measure(name: str, rounds: int) -> None:
    """Writes a line for each task of one package."""
    for task, (function, given) in TASKS.items():
        samples = timed(PEERS[name](task), function(*given), rounds)
        median = {stage: round(statistics.median(all_), 3) for stage, all_ in samples.items()}
        line = {
            "package": name,
            "version": version(name),
            "task": task,
            "median_ms": median,
            "samples_ms": samples,
        }
        print(json.dumps(line), flush=True)


def main() -> None:
    """Runs each package in a process of its own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--commit", default="", help="of this package's wheel")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--only", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.only:
        return measure(asked.only, asked.rounds)
    lines = []
    for name in (name for name in PEERS if importlib.util.find_spec(name)):
        command = [sys.executable, __file__, "--only", name, "--rounds", str(asked.rounds)]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        lines += [json.loads(text) for text in out.splitlines()]
    for line in lines:
        stages = "  ".join(f"{stage} {line['median_ms'][stage]:>9.1f}" for stage in STAGES)
        print(f"{line['package']:<8} {line['task']:<36} {stages}  ms")
    if asked.save:
        cpu = [
            x.split(":")[1].strip()
            for x in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in x
        ]
        machine = {"processor": cpu[0] if cpu else platform.processor(), "processors": os.cpu_count()}
        python = platform.python_version()
        about = {
            "machine": machine,
            "python": python,
            "threads": 1,
            "commit": asked.commit,
            "rounds": asked.rounds,
        }
        asked.save.write_text(json.dumps({**about, "lines": lines}, indent=1) + "\n")


if __name__ == "__main__":
    main()
