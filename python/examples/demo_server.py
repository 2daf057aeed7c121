"""Scores 569 patients on a server: `sudare serve` as a process, a client over HTTP, NumPy to compare with.

The data are those of demo.py. The client has no code of the server: it plans, encrypts, sends keys and
values as objects named by their SHA-256, asks for a job, and decrypts what comes. The server holds
evaluation keys and nothing secret, and is stopped at the end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import sudare as sd
from demo import WANTED_ERROR, measurements, models

ROOT = Path(__file__).parents[2]


@contextmanager
def server(folder: str | Path, *names: str) -> Iterator[tuple[str, list[str]]]:
    """A server in a process of its own: its address, and a token of the tenant for each name."""
    command = os.environ.get("SUDARE", str(ROOT / "target" / "release" / "sudare"))

    def token(name: str) -> str:
        made = [command, "token", "add", "clinic", "--tokens", "tokens", "--name", name]
        return subprocess.run(made, cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()

    tokens = [token(name) for name in names]
    words = ["--quiet", "serve", "--listen", "127.0.0.1:0", "--data", "data", "--tokens", "tokens"]
    with subprocess.Popen([command, *words], cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        if process.stdout is None:
            sys.exit("the server says nothing")
        yield process.stdout.readline().split()[-1], tokens
        process.terminate()
        if process.wait(60) != 0:
            sys.exit("the server did not stop as it should")


def main() -> None:
    """The whole demonstration."""
    x, benign = measurements()
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    w = models(x, benign)
    bounds = float(np.ceil(np.abs(x).max())), float(np.ceil(np.abs(w).max()))
    plan = sd.plan(
        lambda X, W: X @ W,
        X=sd.spec(x.shape, max_abs=bounds[0]),
        W=sd.spec(w.shape, max_abs=bounds[1]),
        error=WANTED_ERROR,
    )
    client = sd.Client(plan)
    with tempfile.TemporaryDirectory() as folder, server(folder, "laptop") as (url, [token]):
        print(f"server      {url}, in a process of its own")
        remote = sd.remote(url, token=token)
        started = time.perf_counter()
        there = remote.server(client)
        seconds = time.perf_counter() - started
        print(f"keys        {there.key_bytes / 1e6:.1f} MB made and sent in {seconds:.1f} s")
        X, W = client.encrypt(x, "X"), client.encrypt(w, "W")
        started = time.perf_counter()
        scores = X @ W
        print(f"product     {time.perf_counter() - started:.1f} s, with the way of the values there and back")
        found = client.decrypt(scores)
        error = np.abs(found - x @ w).max()
        print(f"error       {error:.1e} against NumPy, {WANTED_ERROR:.0e} allowed")
        right, clear = (np.mean((y[:, 0] > 0) == (benign > 0)) for y in (found, x @ w))
        print(f"diagnoses   {right:.1%} right, {clear:.1%} in the clear")
        if not error < WANTED_ERROR:
            sys.exit("the product is wrong")
    print("stopped     the server has ended")


if __name__ == "__main__":
    main()
