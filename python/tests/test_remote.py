"""A server far away computes as one here does: `sudare serve` as a process, by way of sockets."""

from __future__ import annotations

import os
import pickle
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import sudare as sd

ROOT = Path(__file__).parents[2]
COMMAND = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug" / "sudare"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """An address and a token."""
    if not COMMAND.exists():
        pytest.skip("the command is not built")
    folder = tmp_path_factory.mktemp("serve")
    made = [str(COMMAND), "token", "clinic", "--tokens", "tokens"]
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
    ]
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().split()[-1], token
        server.terminate()
        assert server.wait(30) == 0


def test_a_circuit_far_away(served: tuple[str, str]) -> None:
    remote = sd.remote(served[0], token=served[1])
    plan = sd.plan(
        lambda A, B, W: (A @ B + 1) * W,
        A=sd.spec((4, 3)),
        B=sd.spec((3, 2)),
        W=sd.spec((4, 2), plain=True),
        error=1e-4,
    )
    client = sd.Client(plan)
    server = remote.server(client)
    rng = np.random.default_rng(3)
    A, B, W = rng.uniform(-1, 1, (4, 3)), rng.uniform(-1, 1, (3, 2)), rng.uniform(-1, 1, (4, 2))
    found = client.decrypt((client.encrypt(A, "A") @ client.encrypt(B, "B") + 1) * W)
    assert np.abs(found - (A @ B + 1) * W).max() < 1e-4
    whole = server.run(client.encrypt(A, "A"), client.encrypt(B, "B"), server.plain(W, "W"))
    assert np.abs(client.decrypt(whole) - (A @ B + 1) * W).max() < 1e-4
    assert served[0] in repr(server)
    # From the keys alone, without the client.
    again = remote.server(plan, server.to_bytes())
    product = again.bind(client.encrypt(A, "A")) @ client.encrypt(B, "B")
    assert product.shape == (4, 2)
    with pytest.raises(sd.PlanError):
        _ = product @ product.T


def test_integers_and_statistics_far_away(served: tuple[str, str]) -> None:
    remote = sd.remote(served[0], token=served[1])
    X = np.random.default_rng(4).uniform(-1, 1, (9, 2))
    client = sd.Client(sd.table((9, 2)))
    moments = client.decrypt(remote.server(client).moments(client.encrypt(X)))
    assert np.allclose(moments.covariance, np.cov(X, rowvar=False), atol=1e-5)


def test_refusals_are_those_of_a_server_here(served: tuple[str, str]) -> None:
    url, token = served
    remote = sd.remote(url, token=token)
    plan = sd.plan(lambda A, B: A @ B, A=sd.spec((2, 2)), B=sd.spec((2, 2)), error=1e-4)
    client = sd.Client(plan)
    with pytest.raises(sd.RemoteError, match="stays with the client") as caught:
        remote.send(client.secret_bytes())
    assert caught.value.kind == "secret"
    with pytest.raises(sd.RemoteError, match="token"):
        sd.remote(url, token="sudare_0").config()
    x = client.encrypt(np.eye(2), "A")
    keyless = remote.server(plan, x.to_bytes()).bind(x)
    with pytest.raises(sd.FormatError):
        _ = keyless @ client.encrypt(np.eye(2), "B")
    with pytest.raises(sd.PlanError, match="keys"):
        remote.server(plan)
    with pytest.raises(sd.UnsupportedError, match="pickle"):
        pickle.dumps(remote)
    assert token not in repr(remote)
    for wrong in ("http://example.org", "ftp://localhost", "localhost:1", "https://"):
        with pytest.raises(sd.InputError):
            sd.remote(wrong, token=token)
    with pytest.raises(sd.InputError):
        sd.remote(url, token="a b")
    assert remote.config()["panels"] == []
