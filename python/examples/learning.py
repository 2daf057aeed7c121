"""Fits scikit-learn's estimators on encrypted rows of 569 patients, and compares with fits in the clear.

The data are those of `demo.py`: the Breast Cancer Wisconsin (Diagnostic) set of scikit-learn. The owner
encrypts two thirds of the rows and their labels. A server, which has bytes and no secret, multiplies them.
The owner finishes fits from the decrypted moments, and predicts the other third.

    python python/examples/learning.py
"""

from __future__ import annotations

import sys
import time

import numpy as np
import sudare as sd
from demo import measurements
from sudare import learn

# What each measurement can be, from what the columns are: a mean, its standard error, the worst of each.
MEANS = [40, 50, 250, 3000, 0.5, 0.8, 0.8, 0.4, 0.5, 0.2]
BOUNDS = [*MEANS, *(x / 2 for x in MEANS), *(2 * x for x in MEANS)]


def served(plan: str, keys: bytes, rows: bytes) -> bytes:
    """The server's part: the bytes of an answer from those of plan, keys and rows."""
    theirs = learn.Plan.from_json(plan)
    server = sd.Server.from_bytes(theirs.product, keys)
    return learn.Rows.from_bytes(theirs, rows, server).moments().to_bytes()


def main() -> None:
    """Runs the whole of it."""
    x, y = measurements()
    seen = np.random.default_rng(1).permutation(len(x)) < len(x) * 2 // 3
    plan = learn.LogisticRegression().plan(x[seen].shape, max_abs=BOUNDS, classes=[0, 1])
    client = learn.Client(plan)
    keys = client.server().to_bytes()
    rows = client.encrypt(x[seen], y[seen].astype(int)).to_bytes()
    started = time.perf_counter()
    answer = served(plan.to_json(), keys, rows)
    seconds = time.perf_counter() - started
    print(f"server      {seconds:.2f} s; rows {len(rows) / 1e6:.1f} MB, answer {len(answer) / 1e6:.1f} MB")

    groups = client.decrypt(learn.Answer.from_bytes(plan, answer))
    print("of rows that no fit has seen                encrypted   in the clear")
    for kind in (learn.LinearDiscriminantAnalysis, learn.LogisticRegression, learn.GaussianNB):
        found, clear = kind().fit(groups), kind().fit(x[seen], y[seen].astype(int))
        scores = [model.score(x[~seen], y[~seen].astype(int)) for model in (found, clear)]
        print(f"{kind.__name__:40} {scores[0]:12.3f} {scores[1]:14.3f}")
        if scores[0] != scores[1]:
            sys.exit("the labels are not those of the fit in the clear")


if __name__ == "__main__":
    main()
