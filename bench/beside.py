r"""Sudare and libraries of today in turn on one core, line by line: who takes how long, and the ratio.

    go build -C bench/lattigo -o "$PWD/target/lattigo" .
    python3.10 -m venv target/peers/openfhe; target/peers/openfhe/bin/pip install numpy openfhe==1.6.1.0.22.4
    python -m venv target/peers/tenseal; target/peers/tenseal/bin/pip install numpy tenseal==0.3.18
    python bench/beside.py --sudare target/release/sudare-bench --lattigo target/lattigo \
        --seal target/peers/tenseal/bin/python --openfhe target/peers/openfhe/bin/python \
        --families avx2,avx512ifma --rounds 5 --save bench/runs/beside-DATE.json ops ops-k3 schemes

Each round runs every peer and every family of Sudare once, a process each, on one core (`--core`); the one
that begins changes from round to round. Times are those of the processor. A line of the stored run has the
medians of each peer and of ours by family, and the median over the rounds of a round's peer / ours: above 1
ours is faster. `best` is the quickest peer of the line by family. `bench/lattigo/bench.go` and
`bench/libraries.py` say what the peers compute, and by which parameters; their answers are checked. The exit
code is 1 if one was wrong.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

OURS = {
    "ops": "ops --only encode,encrypt,decrypt,decode,add,mul,rotate",
    "ops-k3": "ops --n 32768 --k 3 --only choice,rot,mul",
    "schemes": "schemes --sweep depth --depth 3,6 --scheme bfv,bgv",
    "bootstrap": "bootstrap --set C --slots complex --quick",
}
# What the peers do by one call.
JOINED = {"decrypt and decode": ("decrypt", "decode")}
CHOSEN = ", the model's choice"
# The name of a line: suite, case, depth.
Name = tuple[str, str, int | None]


def lines(command: list[str], asked: argparse.Namespace, family: str | None = None) -> list[dict[str, Any]]:
    """The checked lines of one process on the core that was asked for."""
    one = {"OMP_NUM_THREADS": "1", "GOMAXPROCS": "1", "RAYON_NUM_THREADS": "1"}
    environment = {**os.environ, **one, **({"SUDARE_KERNEL": family} if family else {})}
    pinned = ["taskset", "-c", str(asked.core), *command]
    ran = subprocess.run(pinned, capture_output=True, text=True, env=environment)
    found = [json.loads(text) for text in ran.stdout.splitlines() if text.startswith("{")]
    wrong = [f"{x['case']}: {x['check']}" for x in found if x["check"] not in ("ok", "not checked")]
    if ran.returncode or wrong:
        sys.exit(f"{' '.join(command)}: {wrong or ran.stderr.strip().splitlines()[-1:]}")
    return found


def ours(suite: str, family: str, asked: argparse.Namespace) -> dict[Name, dict[str, Any]]:
    """Our lines of one round, named as those of the peers."""
    options = ["--json", "--threads", "1", "--seconds", str(asked.seconds), "--least", "5"]
    found = {
        (suite, x["case"].removesuffix(CHOSEN).split(", h =")[0], x.get("depth")): x
        for x in lines([str(asked.sudare), *options, *OURS[suite].split()], asked, family)
        if ", h =" not in x["case"] or x["case"].endswith(CHOSEN)
    }
    for name, parts in JOINED.items():
        of = [found[suite, part, None] for part in parts if (suite, part, None) in found]
        if len(of) == len(parts):
            found[suite, name, None] = {**of[0], "cpu_ms": sum(x["cpu_ms"] for x in of)}
    return found


def peers(suite: str, asked: argparse.Namespace) -> dict[str, list[str]]:
    """The commands of the peers that have the suite."""
    script = str(Path(__file__).with_name("libraries.py"))
    python = {"seal": asked.seal, "openfhe": asked.openfhe}
    found = {k: [str(p), script, k, suite] for k, p in python.items() if p and suite != "bootstrap"}
    return {"lattigo": [str(asked.lattigo), "measure", suite], **found} if asked.lattigo else found


def compare(suite: str, asked: argparse.Namespace) -> list[dict[str, Any]]:
    """The lines of a suite that a peer and Sudare have."""
    turns: list[tuple[str, Any]] = [
        *peers(suite, asked).items(),
        *((f, None) for f in asked.families.split(",")),
    ]
    times: dict[Name, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    about: dict[Name, dict[str, dict[str, Any]]] = defaultdict(dict)
    load = []
    for i in range(asked.rounds):
        k = i % len(turns)
        for who, command in turns[k:] + turns[:k]:
            load.append(os.getloadavg()[0])
            if command:
                found = {(suite, x["case"], x.get("depth")): x for x in lines(command, asked)}
            else:
                found = ours(suite, who, asked)
            for name, x in found.items():
                times[name][who].append(x["cpu_ms"])
                about[name][who] = x
    families = asked.families.split(",")
    rows = []
    for name, of in times.items():
        others = [who for who in of if who not in families]
        if not others or not all(f in of for f in families):
            continue
        ratios = {
            f: {p: statistics.median(x / y for x, y in zip(of[p], of[f], strict=True)) for p in others}
            for f in families
        }
        rows.append(
            {
                "suite": suite,
                "case": name[1],
                "depth": name[2],
                "machine": about[name][families[-1]]["machine"],
                "day": time.strftime("%Y-%m-%d"),
                "load": [min(load), max(load)],
                "params": about[name][families[0]].get("params"),
                "peers": {
                    p: {k: about[name][p].get(k) for k in ("peer", "params", "max_error")} for p in others
                },
                "cpu_ms": {who: statistics.median(x) for who, x in of.items()},
                "ratio": ratios,
                "best": {f: min(r, key=r.__getitem__) for f, r in ratios.items()},
                "rounds_cpu_ms": of,
            }
        )
    return rows


def main() -> int:
    """Reads the options, compares the suites, stores and prints the lines."""
    parser = argparse.ArgumentParser(
        description=__doc__ or "", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suites", nargs="+", choices=list(OURS))
    parser.add_argument("--sudare", type=Path, required=True, help="a release build of sudare-bench")
    parser.add_argument("--lattigo", type=Path, help="the program of bench/lattigo")
    parser.add_argument("--seal", type=Path, help="a Python with TenSEAL")
    parser.add_argument("--openfhe", type=Path, help="a Python with OpenFHE")
    parser.add_argument("--families", default="avx2", help="kernel families of ours, the best last")
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.4, help="for one case of ours")
    parser.add_argument("--save", type=Path, help="what the file has of other suites stays")
    asked = parser.parse_args()
    before = json.loads(asked.save.read_text()) if asked.save and asked.save.exists() else []
    kept = [x for x in before if x["suite"] not in asked.suites]
    for suite in asked.suites:
        rows = compare(suite, asked)
        kept += rows
        for x in rows:
            cpu = "  ".join(f"{who} {ms:.3f}" for who, ms in x["cpu_ms"].items())
            ratio = "  ".join(f"{f}: {x['ratio'][f][p]:.2f} ({p})" for f, p in x["best"].items())
            print(f"{suite:<8} {x['case']:<26} {x['depth'] or '':<2} {ratio}   {cpu} ms", flush=True)
        if asked.save:
            asked.save.write_text("[\n" + ",\n".join(json.dumps(x) for x in kept) + "\n]\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
