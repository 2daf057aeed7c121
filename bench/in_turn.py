r"""Two builds of `sudare-bench` in turn, and whether any line takes longer than before.

    python bench/in_turn.py --before OLD --after NEW --rounds 5 --save bench/runs/in-turn-DATE.json \
        ntt ops "ops --n 32768 --k 3" "exact --sweep degree => schemes --sweep degree"

Each suite runs with both builds in turn, `--rounds` times; the one that goes first changes every round.
Lines of the same name are compared by processor time: the figure is the median over the rounds of a
round's `cpu_ms` after / before, so that a machine which slows down for minutes slows both. Text before
"=>" is for the old build, where a suite changed its name. The exit code is 1 if an answer was wrong or a
ratio passes `--most`.
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

NAMES = ("case", "n", "method", "d", "shape", "depth", "batch", "threads")


def run(binary: Path, arguments: str, asked: argparse.Namespace) -> dict[tuple, dict]:
    """The lines of one run by their names."""
    options = ["--json", "--seconds", str(asked.seconds), "--least", str(asked.least)]
    out = subprocess.run(
        [binary, *options, *arguments.split()], check=True, capture_output=True, text=True
    ).stdout
    lines = {}
    for text in out.splitlines():
        line = json.loads(text)
        if line["check"] not in ("ok", "not checked"):
            sys.exit(f"{binary} {arguments}: {line['case']}: {line['check']}")
        if line["cpu_ms"]:
            lines[tuple(json.dumps(line.get(name)) for name in NAMES)] = line
    return lines


def compare(suite: str, options: argparse.Namespace) -> list[dict]:
    """The lines that both builds have, with the times and the ratio of every round."""
    before, _, after = (part.strip() for part in suite.partition("=>"))
    builds = [(options.before, before), (options.after, after or before)]
    times: dict[tuple, list[tuple[float, float]]] = defaultdict(list)
    machine, lost = None, set()
    for i in range(options.rounds):
        order = (0, 1) if i % 2 == 0 else (1, 0)
        lines = {build: run(*builds[build], options) for build in order}
        lost |= lines[0].keys() ^ lines[1].keys()
        for name in lines[0].keys() & lines[1].keys():
            times[name].append((lines[0][name]["cpu_ms"], lines[1][name]["cpu_ms"]))
        machine = [next(iter(lines[build].values()))["machine"] for build in (0, 1)]
    for name in sorted(lost):
        print(f"  only one build has {shown(name)}", file=sys.stderr)
    return [
        {
            "suite": suite,
            **{key: json.loads(value) for key, value in zip(NAMES, name, strict=True)},
            "before_cpu_ms": statistics.median(b for b, _ in rounds),
            "after_cpu_ms": statistics.median(a for _, a in rounds),
            "ratio": statistics.median(a / b for b, a in rounds),
            "rounds": rounds,
            "machines": machine,
        }
        for name, rounds in sorted(times.items())
    ]


def shown(name: tuple) -> str:
    """A line's name for people."""
    values = {key: json.loads(value) for key, value in zip(NAMES, name, strict=True)}
    return ", ".join(f"{key} {value}" for key, value in values.items() if value is not None)


def main() -> int:
    """Reads the options, compares the suites, stores and prints the lines."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("suites", nargs="+")
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--after", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--least", type=int, default=3)
    parser.add_argument("--most", type=float, default=1.03)
    parser.add_argument("--save", type=Path)
    options = parser.parse_args()
    lines = []
    for suite in options.suites:
        found = compare(suite, options)
        lines += found
        for line in found:
            slow = "  <- slower" if line["ratio"] > options.most else ""
            name = tuple(json.dumps(line[key]) for key in NAMES)
            times = f"{line['before_cpu_ms']:10.4f} {line['after_cpu_ms']:10.4f} ms {line['ratio']:6.3f}"
            print(f"{times}  {suite}: {shown(name)}{slow}", flush=True)
        if options.save:
            options.save.write_text("[\n" + ",\n".join(json.dumps(line) for line in lines) + "\n]\n")
    return int(any(line["ratio"] > options.most for line in lines))


if __name__ == "__main__":
    sys.exit(main())
