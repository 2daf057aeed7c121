"""Ctrl-C ends long work soon, whatever it is, and leaves everything usable."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import sudare as sd

pytestmark = pytest.mark.skipif(os.name == "nt", reason="a process sends itself SIGINT")

# Work looks every 50 ms; the rest is for a busy machine. What is interrupted here takes longer.
SOON = 2.0
DELAY = 0.15

Work = Callable[[], Any]


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """SIGINT is heard, by what is started from here too: a shell's background jobs begin with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(work: Work) -> bool:
    """Whether the work was ended by SIGINT, in time; it may have been over before."""
    sent = 0.0

    def send() -> None:
        nonlocal sent
        time.sleep(DELAY)
        sent = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=send)
    thread.start()
    try:
        try:
            work()
            ended = False
        except KeyboardInterrupt:
            ended = True
            assert time.monotonic() - sent < SOON
        thread.join()
        # Where the work was over first, the signal comes here.
        time.sleep(0.01)
    except KeyboardInterrupt:
        thread.join()
        return False
    return ended


def repeated(work: Work, seconds: float = 4.0) -> Work:
    """The work again and again, so that it is long on every machine."""

    def run() -> None:
        started = time.monotonic()
        while time.monotonic() - started < seconds:
            work()

    return run


def contexts(threads: int) -> Iterator[Work]:
    yield repeated(lambda: sd.context(depth=3, threads=threads))
    ctx = sd.context(depth=1, threads=threads, tile=4)
    a = np.full((24, 24), 0.01)
    x = ctx.encrypt(a)
    yield repeated(lambda: x @ x)
    yield repeated(lambda: ctx.encrypt(a))
    assert np.abs(ctx.decrypt(x @ x) - a @ a).max() < 1e-4


def bits(threads: int) -> Iterator[Work]:
    yield repeated(lambda: sd.bits(threads=threads))
    ctx = sd.bits(parameters="insecure_test", threads=threads)
    a = np.arange(64, dtype=np.uint64).reshape(8, 8)
    x = ctx.encrypt(a)
    yield repeated(lambda: x * x)
    yield repeated(lambda: (x + x).sum())
    y = ctx.encrypt(np.array([250], np.uint8))
    assert ctx.decrypt(y + y).tolist() == [244]


def integers(threads: int) -> Iterator[Work]:
    shape, bound = (300, 300), 10**6
    plan = sd.plan(
        lambda A, B: A @ B,
        A=sd.spec(shape, max_abs=bound, dtype=int),
        B=sd.spec(shape, max_abs=bound, dtype=int),
    )
    client = plan.client(threads=threads)
    a = np.arange(90000).reshape(shape) % bound
    x, y = client.encrypt(a, "A"), client.encrypt(a, "B")
    server = client.server()
    yield repeated(lambda: server.bind(x) @ y)
    yield repeated(lambda: client.encrypt(a, "A").to_bytes())
    assert np.array_equal(client.decrypt(server.bind(x) @ y), a @ a)


def tables(threads: int) -> Iterator[Work]:
    x = np.linspace(-1, 1, 12000).reshape(1000, 12)
    client = sd.Client(sd.table(x.shape), threads=threads)
    yield repeated(client.server)
    server, table = client.server(), client.encrypt(x)
    yield repeated(lambda: server.moments(table))
    assert np.allclose(client.decrypt(server.moments(table)).mean, x.mean(axis=0), atol=1e-3)


def plans(threads: int) -> Iterator[Work]:
    shape = (24, 24)
    A, B = sd.spec(shape), sd.spec(shape)

    def plan() -> sd.Plan:
        made: sd.Plan = sd.plan(lambda A, B: (A @ B) @ (A + B), A=A, B=B, error=1e-2)
        return made

    yield repeated(plan)
    made = plan()
    client = sd.Client(made, threads=threads)
    yield repeated(lambda: client._core.server(threads, None))
    client.server()
    a = np.full(shape, 0.01)
    yield repeated(lambda: client.encrypt(a, "A"))
    x, y = client.encrypt(a, "A"), client.encrypt(a, "B")
    yield repeated(lambda: x @ y)
    assert np.abs(client.decrypt((x @ y) @ (x + y)) - (a @ a) @ (a + a)).max() < 1e-2


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", [contexts, bits, integers, tables, plans])
def test_every_kind(kind: Callable[[int], Iterator[Work]], threads: int) -> None:
    """Before, the interrupt came when the work was over."""
    for at, work in enumerate(kind(threads)):
        assert interrupted(work), f"{kind.__name__}, work {at} was not interrupted"


def test_a_handler_that_goes_on() -> None:
    """A handler that raises nothing ends nothing."""
    seen: list[float] = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(time.monotonic()))
    try:
        ctx = sd.context(depth=1, threads=2, tile=4)
        a = np.full((24, 24), 0.1)
        x = ctx.encrypt(a)
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))
        timer.start()
        product = x @ x
        ended = time.monotonic()
        timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert np.abs(ctx.decrypt(product) - a @ a).max() < 1e-3
    assert seen
    assert seen[0] < ended, "the handler ran while the work went on"


def test_what_a_callable_raises() -> None:
    """Progress is told by the thread that called, and what it raises ends the work."""
    plan = sd.plan(lambda A: (A @ A).T @ A, A=sd.spec((64, 64)), error=1e-2)
    client = sd.Client(plan, threads=2)
    told: list[tuple[int, int]] = []

    def show(done: int, steps: int) -> None:
        assert threading.current_thread() is threading.main_thread()
        told.append((done, steps))

    client._core.server(2, show)
    assert told[-1][0] == told[-1][1]
    assert [done for done, _ in told] == sorted({done for done, _ in told})

    def refuse(done: int, steps: int) -> None:
        raise LookupError(f"at {done}")

    for _ in range(2):
        with pytest.raises(LookupError, match="at "):
            client._core.server(2, refuse)
    client.server()


def test_a_script() -> None:
    """As at a terminal: SIGINT from outside while keys are made."""
    code = """
        import sudare as sd
        print("ready", flush=True)
        try:
            for _ in range(100):
                sd.context(depth=4)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    script = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert script.stdout is not None
    assert script.stdout.readline() == "ready\n"
    time.sleep(0.5)
    script.send_signal(signal.SIGINT)
    sent = time.monotonic()
    out, _ = script.communicate(timeout=60)
    assert out == "interrupted\n"
    assert script.returncode == 0
    assert time.monotonic() - sent < 2 * SOON
