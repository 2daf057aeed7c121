"""Trains a logistic regression on 569 patients' encrypted measurements, and compares with NumPy.

The data are those of `demo.py`: the Breast Cancer Wisconsin (Diagnostic) set of scikit-learn. The owner
standardises the columns and encrypts the rows as one table. Gradient descent is the server's, on rows and
weights that it never sees; the weights are the only thing that an iteration leaves to the next, and the only
thing that is refreshed.

Set A takes minutes and some 5 GB of memory. `--try` takes a small ring without security, and seconds:

    python python/examples/regression.py
    python python/examples/regression.py --try --rows 100 --iterations 3
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sudare as sd
from demo import Floats, measurements

RATE = 0.7
# What the owner knows of standardised columns and few iterations: margins stay within it. Rows are encrypted
# over it, so that the sigmoid's interval is [-1, 1].
RANGE = 32
DEGREE = 15


def signed_rows(x: Floats, benign: Floats) -> Floats:
    """Rows (x, 1), turned over where the label is 0: all should have a margin above zero."""
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    return np.column_stack([x, np.ones(len(x))]) * np.where(benign > 0, 1, -1)[:, None]


def descend(z: Floats, iterations: int, push: Callable[[Floats], Floats]) -> Floats:
    """Gradient descent in the clear."""
    w = np.zeros(z.shape[1])
    for _ in range(iterations):
        w = w + push(z @ w) @ z
    return w


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the whole of it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--iterations", type=int, default=30)
    parser.add_argument("--rows", type=int, default=569)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--try", dest="small", action="store_true", help="a small ring, without security")
    asked = parser.parse_args(arguments)
    x, benign = measurements()
    z = signed_rows(x, benign)[: asked.rows]
    n, columns = z.shape

    def step(margin: Any) -> Any:
        """What a row of a margin over RANGE adds to the weights, in rows over RANGE: the exact sigmoid's."""
        return RANGE * RATE / n / (1 + np.exp(RANGE * margin))

    push = sd.fit(step, (-1, 1), degree=DEGREE)
    print(f"sigmoid     {push}")
    started = time.perf_counter()
    ctx = sd.context(
        bootstrap="A", columns=32, security="insecure" if asked.small else 128, threads=asked.threads
    )
    rows = ctx.encrypt(z / RANGE)
    w = ctx.encrypt(np.zeros(columns), max_abs=1)
    print(f"keys, data  {time.perf_counter() - started:8.1f} s    {ctx!r}")
    started = time.perf_counter()
    for i in range(asked.iterations):
        # A level for the product with the weights, one for each row's sum, four for the sigmoid, one for the
        # gradient: seven of nine.
        w = (w + (rows @ w).bounded(1).apply(push) @ rows).refresh(max_abs=1)
        print(f"iteration   {i + 1:3}  {time.perf_counter() - started:8.1f} s    {w!r}", flush=True)

    found = ctx.decrypt(w)
    same, exact = (descend(z / RANGE, asked.iterations, p) for p in (push, step))
    error = float(np.abs(found - same).max())
    ours, theirs = (float(np.mean(z @ v > 0)) for v in (found, exact))
    print(f"weights     within {error:.1e} of the same polynomial's in NumPy")
    print(f"accuracy    {ours:.4f}, in the clear with the exact sigmoid {theirs:.4f}")
    if not (error < 1e-3 and abs(ours - theirs) <= 0.01):
        sys.exit("the weights are not those that NumPy computes")


if __name__ == "__main__":
    main()
