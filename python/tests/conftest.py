"""Plans, clients and servers that many tests share."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sudare as sd
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Session = tuple[sd.Plan, sd.Client, sd.Server]
Matrices = Callable[..., list[Floats]]
ERROR = 1e-4
# Of older ones, which the package takes as well, there is less to compare with.
NEWER = pytest.mark.skipif(not hasattr(np, "vecmat"), reason="functions of NumPy 2.2")
ROOT = Path(__file__).parents[2]
COMMAND = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "sudare"


@contextmanager
def serving(folder: Path, *more: str) -> Iterator[tuple[str, str]]:
    """Address and token of a `sudare serve` in a folder, with more arguments."""
    if not COMMAND.exists():
        pytest.skip("the command is not built")
    made = [str(COMMAND), "token", "add", "clinic", "--tokens", "tokens"]
    token = subprocess.run(made, cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    words = [
        str(COMMAND),
        "--quiet",
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--data",
        "data",
        "--tokens",
        "tokens",
        *more,
    ]
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().split()[-1], token
        finally:
            # A test that fails does not wait for a server that nobody ends.
            server.terminate()
        assert server.wait(30) == 0


# What booleans and integers have in common.
BINARY: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x & y,
    lambda x, y: x | y,
    lambda x, y: x ^ y,
    lambda x, y: x == y,
    lambda x, y: x != y,
    lambda x, y: x < y,
    lambda x, y: x <= y,
    lambda x, y: x > y,
    lambda x, y: x >= y,
    np.minimum,
    np.maximum,
]


def same(ctx: sd.BitsClient, got: Any, expected: Any) -> None:
    """An encrypted array is NumPy's, in value, shape and type."""
    assert isinstance(got, sd.EncryptedBits)
    found, wanted = ctx.decrypt(got), np.asarray(expected)
    assert (got.shape, found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_array_equal(found, wanted)


@pytest.fixture(scope="session")
def product() -> Session:
    """A session for the product of a 5×7 and a 7×3 matrix."""
    plan = sd.plan(lambda A, B: A @ B, A=sd.spec((5, 7)), B=sd.spec((7, 3), max_abs=2), error=ERROR)
    client = sd.Client(plan, threads=2)
    return plan, client, client.server()


@pytest.fixture
def matrices() -> Callable[..., list[Floats]]:
    """Random matrices within ±1."""
    rng = np.random.default_rng(7)
    return lambda *shapes: [rng.uniform(-1, 1, shape) for shape in shapes]
