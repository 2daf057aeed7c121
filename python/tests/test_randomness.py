"""A forked process is a copy of its parent's memory: neither may encrypt with what the other did."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import pytest
import sudare as sd

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")

# Where the file of an array of encrypted integers has the seed of its masks.
SEED = slice(144, 176)


def in_both(work: Callable[[], bytes]) -> tuple[bytes, bytes]:
    """What this process makes of `work` after a fork, and what the forked child makes of it."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(receive)
            with os.fdopen(send, "wb") as out:
                out.write(work())
            status = 0
        finally:
            os._exit(status)
    os.close(send)
    with os.fdopen(receive, "rb") as made:
        theirs = made.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, "the child failed"
    return work(), theirs


def test_bits_client() -> None:
    # On one thread: the caller's own, which a forked child has.
    client = sd.BitsClient(parameters="insecure_test", threads=1)
    value = np.uint8(250)
    before = client.encrypt(value).to_bytes()
    ours, theirs = in_both(lambda: client.encrypt(value).to_bytes())
    assert len({bytes(data[SEED]) for data in (before, ours, theirs)}) == 3
    # The bodies of equal numbers would be equal too.
    assert len({data[4096:] for data in (before, ours, theirs)}) == 3
    for data in (before, ours, theirs):
        assert client.decrypt(client.server().load(data)) == value


def test_matrix_client() -> None:
    plan = sd.plan(lambda A, B: A @ B, A=sd.spec((2, 2)), B=sd.spec((2, 2)), error=1e-3)
    client = sd.Client(plan, threads=1)
    value = np.eye(2)
    before = client.encrypt(value, "A").to_bytes()
    ours, theirs = in_both(lambda: client.encrypt(value, "A").to_bytes())
    # The seed is in the header, the body in the segments after it.
    assert len({data[:4096] for data in (before, ours, theirs)}) == 3
    assert len({data[4096:] for data in (before, ours, theirs)}) == 3


def test_keys_for_a_server() -> None:
    client = sd.BitsClient(parameters="insecure_test", threads=1)
    ours, theirs = in_both(lambda: client.server().to_bytes())
    # Both seeds: of the bootstrapping key and of the switching key.
    assert ours[128:160] != theirs[128:160]
    assert ours[160:192] != theirs[160:192]
