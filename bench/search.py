"""Encrypted search from Python by mode and size, every answer compared with NumPy's: seconds, bytes, memory.

    python bench/search.py [--cases small,medium,tenth,plain] [--modes compact,leveled] [--threads 1,2]
        [--questions 4] [--folder FOLDER] [--commit COMMIT] [--save FILE]

Rows are those of the public benchmark fetch-by-similarity: half of them near one of as many centres as there
are rows divided by 32, the others anywhere; a payload is seven numbers of 12 bits. `small` has 50,000 rows of
128 coordinates and `medium` 1,000,000 of 256. `tenth` is a tenth of the large one, 2,000,000 rows of
512, stored and read in chunks; `--memory` limits the server. `plain` has 4,096 rows of 128 that the server
knows. A case runs in a process of its own, which is client and server; times are by the wall. The first
question of a process comes first in its line, and its memory is fresh. `sudare calibrate` measures the
prices of what is predicted. The exit code is 1 if an answer is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from machine import processor
from numpy.typing import NDArray

#: A multiple of the rows that both modes store together.
CHUNK = 1 << 16


@dataclass
class Case:
    """Rows, coordinates, the end of the scores of what does not match."""

    rows: int
    d: int
    low: float


CASES = {
    "small": Case(50_000, 128, 0.66),
    "medium": Case(1_000_000, 256, 0.52),
    "tenth": Case(2_000_000, 512, 0.40),
}


def directions(rng: np.random.Generator, n: int, d: int) -> NDArray[np.float32]:
    """Unit vectors that point anywhere."""
    x = rng.standard_normal((n, d), dtype=np.float32)
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))


class Rows:
    """Rows of a case, a chunk at a time, the same ones whenever they are asked for."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.centres = directions(np.random.default_rng(7), case.rows // 32, case.d)

    def near(self, rng: np.random.Generator, n: int) -> NDArray[np.float32]:
        """Vectors near centres."""
        at = self.centres[rng.integers(0, len(self.centres), n)]
        x = at + np.float32(0.3) * directions(rng, n, self.case.d)
        return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True))

    def chunks(self) -> Iterator[tuple[NDArray[np.float32], NDArray[np.uint16]]]:
        """Vectors and payloads."""
        for begin in range(0, self.case.rows, CHUNK):
            rng = np.random.default_rng([11, begin])
            n = min(CHUNK, self.case.rows - begin)
            rows = directions(rng, n, self.case.d)
            close = rng.random(n) < 0.5
            rows[close] = self.near(rng, int(close.sum()))
            at = np.arange(begin, begin + n)
            columns = [at % 4096, at // 4096, *[at % 97] * 5]
            yield rows, np.stack(columns, axis=1).astype(np.uint16)


def searched(options: argparse.Namespace, name: str, mode: str, threads: int) -> dict[str, Any]:
    """A case's line."""
    import sudare as sd

    case = CASES[name]
    index = sd.Index(
        d=case.d,
        above=0.8,
        gap=(case.low, 0.82),
        rows=case.rows,
        payload=("u2", 7, 12),
        lowest=-case.low,
        mode=mode,
    )
    rows = Rows(case)
    rng = np.random.default_rng(2026)
    questions = rows.near(rng, options.questions)
    matching: list[list[int]] = [[] for _ in questions]
    client = sd.IndexClient(index, threads=threads)
    stored_s = 0.0
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "table.sudare"
        for i, (vectors, payload) in enumerate(rows.chunks()):
            for found, scores in zip(matching, questions @ vectors.T, strict=True):
                found.extend(int(j) + i * CHUNK for j in np.flatnonzero(scores > 0.8))
            put = client.append if i else client.store
            begun = time.perf_counter()
            put(path, vectors, payload=payload)
            stored_s += time.perf_counter() - begun
        size = sum(f.stat().st_size for f in path.rglob("*") if f.is_file())
        server = client.server()
        begun = time.perf_counter()
        table = server.open(path, memory=options.memory or None)
        opened_s = time.perf_counter() - begun
        seconds: dict[str, list[float]] = {"count": [], "fetch": []}
        right = True
        for question, wanted in zip(questions, matching, strict=True):
            asked = client.query(question)
            begun = time.perf_counter()
            answer = table.count(asked)
            seconds["count"].append(time.perf_counter() - begun)
            right &= client.decrypt(answer) == len(wanted)
            begun = time.perf_counter()
            answer = table.fetch(asked)
            seconds["fetch"].append(time.perf_counter() - begun)
            right &= client.decrypt(answer)["index"].tolist() == wanted
    return {
        "case": name,
        "mode": mode,
        "threads": threads,
        "rows": case.rows,
        "coordinates": case.d,
        "predicted_s": index.seconds(),
        "planned_bytes": index.bytes,
        "store_s": stored_s,
        "open_s": opened_s,
        "bytes": size,
        "matches": [len(x) for x in matching],
        "right": bool(right),
        "seconds": seconds,
    }


def plain(options: argparse.Namespace, threads: int) -> dict[str, Any]:
    """Scores against rows that the server knows."""
    import sudare as sd

    rows = directions(np.random.default_rng(3), 4096, 128)
    index = sd.PlainIndex(d=128)
    client = sd.Client(index)
    table = sd.PlainTable(index, rows, threads=threads)
    seconds, right = [], True
    for i in range(50 * options.questions):
        asked = client.query(rows[i])
        begun = time.perf_counter()
        answer = table.scores(asked)
        seconds.append(time.perf_counter() - begun)
        right &= bool(np.abs(client.decrypt(answer) - rows @ rows[i]).max() < 8 * index.deviation)
    return {
        "case": "plain",
        "threads": threads,
        "rows": 4096,
        "coordinates": 128,
        "query_bytes": len(asked),
        "answer_bytes": len(answer),
        "right": right,
        "seconds": {"scores": seconds},
    }


def shown(line: dict[str, Any]) -> str:
    """A line for the terminal."""
    times = "  ".join(f"{k} {np.median(v[1:] or v):.4g} s" for k, v in line["seconds"].items())
    of = f"{line['case']} {line.get('mode', '')}, {line['threads']} threads"
    planned = f"  planned {line['predicted_s']:.3g} s" if "predicted_s" in line else ""
    return f"{of:<30} {times}{planned}  {line['max_rss_mb']} MB  {'right' if line['right'] else 'WRONG'}"


def main() -> int:
    """Runs each case in a process of its own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", default="small,plain")
    parser.add_argument("--modes", default="compact,leveled")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--questions", type=int, default=4)
    parser.add_argument("--folder", help="where tables lie meanwhile")
    parser.add_argument("--memory", help="bytes that the server may take, as 2GB")
    parser.add_argument("--commit", default="")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--only", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        case, mode, threads = options.only
        line = (
            plain(options, int(threads)) if case == "plain" else searched(options, case, mode, int(threads))
        )
        line["max_rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000
        print(json.dumps(line))
        return 0
    lines, began = [], os.getloadavg()
    for case in options.cases.split(","):
        for mode in options.modes.split(",") if case != "plain" else ["-"]:
            for threads in options.threads.split(","):
                command = [sys.executable, __file__, *sys.argv[1:], "--only", case, mode, threads]
                ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                lines.append(json.loads(ran.stdout.splitlines()[-1]))
                print(shown(lines[-1]), flush=True)
    if options.save:
        about = {
            "suite": "search",
            "machine": {"processor": processor(), "processors": os.cpu_count()},
            "commit": options.commit,
            "day": time.strftime("%Y-%m-%d"),
            "load": {"before": began, "after": os.getloadavg()},
            "unit": "seconds of the wall, one process with client and server; max_rss_mb is that process's",
        }
        options.save.write_text(json.dumps({**about, "lines": lines}, indent=1) + "\n")
    return 0 if all(line["right"] for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
