"""Scores 569 patients' encrypted measurements with an encrypted model, and compares with NumPy.

The data are the Breast Cancer Wisconsin (Diagnostic) set: 30 measurements of cell nuclei of 569
patients, from the UCI Machine Learning Repository (W. Wolberg, O. Mangasarian, N. Street, W. Street,
1995, CC BY 4.0), as the file breast_cancer.csv inside the Python package scikit-learn. Nothing of
that package is imported; only the file is read.

The client standardises the measurements and fits four linear models in plain NumPy. Measurements
and models are encrypted under its key; a server in another process, which gets the plan, evaluation
keys and ciphertexts as bytes and nothing else, multiplies them; the client decrypts the scores.
"""

from __future__ import annotations

import csv
import importlib.util
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import sudare as sd
from numpy.typing import NDArray

Floats = NDArray[np.float64]
WANTED_ERROR = 1e-4


def measurements() -> tuple[Floats, Floats]:
    """The 569×30 measurements, and 1 for benign, 0 for malignant."""
    package = importlib.util.find_spec("sklearn")
    if package is None or not package.submodule_search_locations:
        sys.exit("the data come with scikit-learn: python -m pip install --no-deps scikit-learn")
    path = Path(package.submodule_search_locations[0]) / "datasets" / "data" / "breast_cancer.csv"
    with path.open(newline="") as file:
        rows = csv.reader(file)
        next(rows)
        table = np.array([[float(cell) for cell in row] for row in rows])
    print(f"data        {path.name} of scikit-learn {version('scikit-learn')}, {table.shape[0]} patients")
    return table[:, :-1], table[:, -1]


def models(x: Floats, benign: Floats) -> Floats:
    """Four ridge regressions: of the diagnosis on all measurements, their means, errors, extremes."""
    target = 2 * benign - 1
    weights = np.zeros((x.shape[1], 4))
    for column, chosen in enumerate([slice(0, 30), slice(0, 10), slice(10, 20), slice(20, 30)]):
        part = x[:, chosen]
        weights[chosen, column] = np.linalg.solve(part.T @ part + np.eye(part.shape[1]), part.T @ target)
    return weights


def serve(client: Connection) -> None:
    """The server's process: no secret comes in here, and nothing but bytes that are checked."""
    plan = sd.Plan.from_json(client.recv_bytes().decode())
    keys, left, right = (client.recv_bytes() for _ in range(3))
    started = time.perf_counter()
    server = sd.Server.from_bytes(plan, keys)
    x, y = (sd.Encrypted.from_bytes(plan, data) for data in (left, right))
    loaded = time.perf_counter()
    product = server.bind(x) @ y
    computed = time.perf_counter()
    client.send_bytes(product.to_bytes())
    client.send_bytes(json.dumps({"load keys": loaded - started, "multiply": computed - loaded}).encode())


def main() -> None:
    """Runs the whole of it."""
    times: dict[str, float] = {}

    @contextmanager
    def stage(name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        times[name] = time.perf_counter() - started

    print(
        "Tumours are told apart by encrypted measurements and an encrypted model. A client encrypts both;\n"
        "a server in another process, without the secret key, multiplies them; the client decrypts scores.\n"
    )
    x, benign = measurements()
    x = np.clip((x - x.mean(axis=0)) / x.std(axis=0), -10, 10)
    w = models(x, benign)
    bound = float(np.ceil(np.abs(w).max() * 10) / 10)
    print(
        f"task        scores = X @ W, X {x.shape} within ±10, W {w.shape} within ±{bound}, both encrypted\n"
    )

    with stage("plan"):
        plan = sd.plan(
            lambda X, W: X @ W,
            X=sd.spec(x.shape, max_abs=10),
            W=sd.spec(w.shape, max_abs=bound),
            error=WANTED_ERROR,
        )
    print(plan, end="\n\n")

    with stage("keys"):
        client = sd.Client(plan)
        server = client.server()
    with stage("encrypt"):
        encrypted = client.encrypt(x, "X"), client.encrypt(w, "W")

    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=serve, args=(there,))
    process.start()
    there.close()
    sent = [plan.to_json().encode(), server.to_bytes(), *(x.to_bytes() for x in encrypted)]
    for data in sent:
        here.send_bytes(data)
    product = sd.Encrypted.from_bytes(plan, here.recv_bytes())
    times |= json.loads(here.recv_bytes())
    process.join()

    with stage("decrypt"):
        scores = client.decrypt(product)
    with stage("NumPy"):
        expected = x @ w

    error = float(np.abs(scores - expected).max())
    print(f"result      {product!r}\n")
    _, keys, sent_x, sent_w = sent
    steps: list[tuple[str, str, str, bytes | None]] = [
        ("plan", "client", "plan", None),
        ("make keys", "client", "keys", keys),
        ("encrypt X and W", "client", "encrypt", sent_x + sent_w),
        ("load the keys", "server", "load keys", None),
        ("multiply", "server", "multiply", product.to_bytes()),
        ("decrypt", "client", "decrypt", None),
        ("NumPy, in the clear", "", "NumPy", None),
    ]
    print(f"{'step':22}{'who':8}{'ms':>9}{'MB sent':>10}")
    for step, who, name, message in steps:
        sent_mb = "" if message is None else f"{len(message) / 1e6:.2f}"
        print(f"{step:22}{who:8}{times[name] * 1e3:9.2f}{sent_mb:>10}")

    print("\ndiagnosis      right by encrypted scores   wrong")
    for name, patients in (("benign", benign > 0), ("malignant", benign == 0)):
        right = int(np.sum((scores[patients, 0] > 0) == (name == "benign")))
        print(f"{name:15}{right:26}{patients.sum() - right:8}")
    print(
        f"\nerror       {error:.1e} at most from NumPy, {plan.error:.1e} promised, {WANTED_ERROR:.0e} wanted"
    )
    if not error <= WANTED_ERROR:
        sys.exit("the product is not the one that NumPy computes")
    python = os.path.relpath(sys.executable)
    print(f"next        {python}, with the first page of the guide: docs/guide/1-begin/01-first-product.md")


if __name__ == "__main__":
    main()
