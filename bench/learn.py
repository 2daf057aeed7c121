"""Fits on encrypted tables from Python, each compared with the same fit in the clear: seconds, bytes, memory.

    python bench/learn.py [--cases moments,gradient,kmeans] [--threads 1] [--steps 30] [--rows 12000]
        [--features 196] [--batch 1024] [--set A] [--security insecure] [--commit COMMIT] [--save FILE]

`moments` and `gradient` fit a logistic regression of two classes, normal rows around two means: in one pass
from moments, and by `--steps` steps of gradient descent on `--batch` rows each, refreshed by set `--set`.
`kmeans` has 1,000 rows of 8 features in three clusters, and as many iterations as are needed for a sixth of
the steps. A case runs in a process of its own, which is owner and server. Seconds are those of the fit
alone, by the wall and by the processor. The exit code is 1 if a fit is not the one in the clear.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import sudare as sd
from machine import processor
from numpy.typing import NDArray
from sudare import learn

#: Elements of a table are within this bound.
BOUND = 4.0


def classes(rows: int, features: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Two classes whose means are two standard deviations apart."""
    rng = np.random.default_rng(0)
    way = rng.normal(size=features)
    y = rng.integers(0, 2, rows)
    x = rng.normal(size=(rows, features)) + np.outer(2 * y - 1, way / np.linalg.norm(way))
    return np.clip(x, -BOUND, BOUND), y


def seconds(work: Any) -> tuple[Any, dict[str, float]]:
    """What some work gives, and its seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = work()
    return found, {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}


def context(options: argparse.Namespace, columns: int) -> sd.Context:
    """A context with tables of so many columns."""
    security: Any = options.security if options.security == "insecure" else int(options.security)
    return sd.context(bootstrap=options.set, columns=columns, security=security, threads=options.threads)


def moments(options: argparse.Namespace) -> dict[str, Any]:
    """A logistic regression from encrypted moments."""
    x, y = classes(options.rows, options.features)
    plan = learn.LogisticRegression().plan(x.shape, max_abs=BOUND, classes=[0, 1])
    client = learn.Client(plan)
    client.server()
    rows = client.encrypt(x, y)
    fitted, taken = seconds(lambda: learn.LogisticRegression().fit(rows))
    found, clear = client.decrypt(fitted), learn.LogisticRegression().fit(x, y)
    same = float((found.predict(x) == clear.predict(x)).mean())
    far = float(np.abs(found.coef_ - clear.coef_).max())
    return {**taken, "score": found.score(x, y), "same_labels": same, "distance": far, "right": same > 0.999}


def gradient(options: argparse.Namespace) -> dict[str, Any]:
    """The same by gradient descent on encrypted rows."""
    x, y = classes(options.rows, options.features)
    same_steps = {"max_iter": options.steps, "learning_rate": 1.0, "batch_size": options.batch}
    clear = learn.GradientLogisticRegression(**same_steps).fit(x, y)
    ctx = context(options, 1 << (options.features - 1).bit_length())
    (table, labels), encryption = seconds(
        lambda: (ctx.encrypt(x, max_abs=BOUND), ctx.encrypt(y[:, None].astype(float), max_abs=1))
    )
    model = learn.GradientLogisticRegression(**same_steps, max_margin=16)
    fitted, taken = seconds(lambda: model.fit(table, labels))
    found = ctx.decrypt(fitted)
    far = float(np.abs(found.coef_ - clear.coef_).max())
    gap = abs(found.score(x, y) - clear.score(x, y))
    return {
        **taken,
        "encryption_seconds": encryption["seconds"],
        "table_mb": table.nbytes / 1e6,
        "margins": clear.margin_range_,
        "score": found.score(x, y),
        "distance": far,
        "right": clear.margin_range_ < 16 and far < 0.05 and gap < 0.005,
    }


def kmeans(options: argparse.Namespace) -> dict[str, Any]:
    """Clusters of encrypted rows."""
    rng = np.random.default_rng(1)
    x = np.clip(
        np.repeat(rng.uniform(-0.5, 0.5, (3, 8)), 334, axis=0)[:1000] + rng.normal(0, 0.1, (1000, 8)), -1, 1
    )
    start: dict[str, Any] = {"init": x[[0, 400, 800]], "max_iter": max(1, options.steps // 6)}
    clear = learn.KMeans(3, **start).fit(x)
    ctx = context(options, 8)
    table = ctx.encrypt(x, max_abs=1)
    fitted, taken = seconds(lambda: learn.KMeans(3, **start, max_distance=2, least=0.2).fit(table))
    found = ctx.decrypt(fitted)
    same = float((found.predict(x) == clear.predict(x)).mean())
    far = float(np.abs(found.cluster_centers_ - clear.cluster_centers_).max())
    return {
        **taken,
        "iterations": start["max_iter"],
        "same_labels": same,
        "distance": far,
        "right": same > 0.99,
    }


CASES = {"moments": moments, "gradient": gradient, "kmeans": kmeans}


def main() -> int:
    """Runs each case in a process of its own."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rows", type=int, default=12_000)
    parser.add_argument("--features", type=int, default=196)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--set", default="A")
    parser.add_argument("--security", default="128")
    parser.add_argument("--commit", default="")
    parser.add_argument("--save", type=Path)
    parser.add_argument("--only", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        line = {"case": options.only, "threads": options.threads, **CASES[options.only](options)}
        line["max_rss_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000
        print(json.dumps(line))
        return 0
    lines, began = [], os.getloadavg()
    for case in options.cases.split(","):
        command = [sys.executable, __file__, *sys.argv[1:], "--only", case]
        ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        lines.append(json.loads(ran.stdout.splitlines()[-1]))
        print(lines[-1], flush=True)
    if options.save:
        about = {
            "suite": "learn",
            "rows": options.rows,
            "features": options.features,
            "steps": options.steps,
            "batch": options.batch,
            "set": options.set,
            "security": options.security,
            "machine": {"processor": processor(), "processors": os.cpu_count()},
            "commit": options.commit,
            "day": time.strftime("%Y-%m-%d"),
            "load": {"before": began, "after": os.getloadavg()},
        }
        options.save.write_text(json.dumps({**about, "lines": lines}, indent=1) + "\n")
    return 0 if all(line["right"] for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
