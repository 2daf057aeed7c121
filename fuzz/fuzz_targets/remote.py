"""Whatever a server answers, its client ends within its limits: by an error of its own, or content.

An input is a byte that says what is asked for and how the answers end, and then the answers, with `NEXT`
between two connections. There are no sockets and no clock: time passes where the client waits.
"""

from __future__ import annotations

import http.client
import io
import json
import random
import threading
from collections.abc import Callable
from contextlib import contextmanager
from hashlib import sha256
from types import SimpleNamespace
from typing import Any

import sudare as sd
from sudare import _remote

NEXT = b"\n=====\n"
TOKEN = "sudare_token"
# The client's limits, so small that an input can pass them.
LIMITS = {"PIECE": 64, "ANSWER": 1 << 13, "OBJECT": 1 << 12, "SITES": 1 << 11, "PATIENCE": 600.0}
# More than there are seconds in a request.
MOST_READS = 400
DATA = bytes(range(200))
FETCHED = b"what the server has"


class _Clock:
    """Time that passes by waiting, a second by reading, and a little by looking."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: set[_Timer] = set()

    def monotonic(self) -> float:
        self.now += 1e-3
        return self.now

    def sleep(self, seconds: float) -> None:
        assert 0 <= seconds <= 60, "the server says how long the client sleeps"
        self.now += seconds
        for timer in [timer for timer in self.timers if self.now >= timer.until]:
            timer.cancel()
            timer.then()

    def timer(self, seconds: float, then: Callable[[], None]) -> _Timer:
        return _Timer(self, seconds, then)


class _Timer:
    """A limit of seconds by such a clock."""

    daemon = False

    def __init__(self, clock: _Clock, seconds: float, then: Callable[[], None]) -> None:
        self.clock, self.until, self.then = clock, clock.now + seconds, then

    def start(self) -> None:
        self.clock.timers.add(self)

    def cancel(self) -> None:
        self.clock.timers.discard(self)


class _Stream(io.RawIOBase):
    """What a connection answers: some bytes, then its end, or the same again for ever."""

    def __init__(self, script: bytes, endless: bool, clock: _Clock) -> None:
        self.script, self.endless, self.clock, self.at, self.reads = (
            script,
            endless and bool(script),
            clock,
            0,
            0,
        )

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        self.reads += self.endless
        assert self.reads < MOST_READS, "an endless answer is read for ever"
        self.clock.sleep(1)
        part = self.script[self.at : self.at + len(into)]
        self.at += len(part)
        if self.endless and self.at == len(self.script):
            self.at = 0
        into[: len(part)] = part
        return len(part)


class _Line(io.BufferedReader):
    """A connection's socket, and what its answers are read from: an answer that is over closes neither."""

    def __init__(self, stream: _Stream) -> None:
        super().__init__(stream, 512)
        self.stream = stream

    def makefile(self, _mode: str) -> _Line:
        return self

    def sendall(self, _data: bytes) -> None: ...

    def shutdown(self, _how: int) -> None:
        self.stream.script, self.stream.endless = b"", False

    def close(self) -> None: ...


class _Connection(http.client.HTTPConnection):
    """Connects to the next part of the script; after the last one to that again."""

    def __init__(self, parts: list[bytes], endless: bool, clock: _Clock) -> None:
        super().__init__("localhost")
        self.parts, self.endless, self.clock, self.requests = parts, endless, clock, 0

    def connect(self) -> None:
        part = self.parts.pop(0) if len(self.parts) > 1 or not self.endless else self.parts[0]
        if not self.parts:
            self.parts = [b""]
        self.sock: Any = _Line(_Stream(part, self.endless, self.clock))

    def request(self, *words: Any, **more: Any) -> None:
        self.requests += 1
        assert self.requests < 2000, "a server keeps its client asking"
        super().request(*words, **more)
        self.sock.stream.reads = 0


def _config(remote: sd.Remote) -> bool:
    return isinstance(remote.config(), dict)


def _send(remote: sd.Remote) -> bool:
    return remote.send(DATA) == sha256(DATA).hexdigest()


def _fetch(remote: sd.Remote) -> bool:
    return remote.fetch(sha256(FETCHED).hexdigest()) == FETCHED


def _run(remote: sd.Remote) -> bool:
    found = remote.run({"kind": "compute"}, lambda done, steps: _counted(done, steps))
    return isinstance(found, bytes) and len(found) <= LIMITS["OBJECT"]


def _counted(done: int, steps: int) -> None:
    assert 0 <= done < 1 << 64
    assert 0 < steps < 1 << 64


def _panel(remote: sd.Remote) -> bool:
    return remote.panel("p").sites is not None


ASKED: list[Callable[[sd.Remote], bool]] = [_config, _send, _fetch, _run, _panel]


@contextmanager
def _small(clock: _Clock) -> Any:
    """The client with small limits and a clock of its own."""
    threads = SimpleNamespace(Event=threading.Event, RLock=threading.RLock, Timer=clock.timer)
    changed = {**LIMITS, "time": clock, "threading": threads}
    before = {name: getattr(_remote, name) for name in changed}
    try:
        for name, value in changed.items():
            setattr(_remote, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(_remote, name, value)


def check(data: bytes) -> bool:
    """Asks for something and gives the answers; whether the client was content."""
    head, script = data[:1] or b"\0", data[1:]
    asked, endless = ASKED[head[0] % len(ASKED)], head[0] >= 128
    clock = _Clock()
    connection = _Connection(script.split(NEXT), endless, clock)
    with _small(clock):
        remote = sd.remote("http://localhost:1", token=TOKEN)
        remote._connection = connection
        try:
            content = asked(remote)
        except sd.SudareError as error:
            assert str(error), "an error says what it is"
            assert len(str(error)) < 1100, "an error is the server's answer again"
            assert str(error).isprintable(), "an error is not for a terminal"
            assert TOKEN not in str(error)
            return False
    assert content, "what comes back is something else than was asked for"
    return True


def answer(body: Any = b"", status: str = "200 OK", headers: str = "") -> bytes:
    """An answer as bytes."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    more = f"{headers}\r\n" if headers else ""
    return f"HTTP/1.1 {status}\r\n{more}Content-Length: {len(data)}\r\n\r\n".encode() + data


def seeds() -> list[bytes]:
    """A server's answers to each question, and refusals."""
    job = {"id": "0" * 32, "created": 0, "state": "queued", "done": 0, "steps": 4}
    result = sha256(FETCHED).hexdigest()
    done = {**job, "state": "done", "result": result, "bytes": 19, "seconds": 1}
    failed = {
        **job,
        "state": "failed",
        "problem": {"kind": "shape", "detail": "no", "status": 422, "type": "x"},
    }
    fetched = answer(FETCHED, "206 Partial Content", f"Content-Range: bytes 0-18/{len(FETCHED)}")
    missing = answer(b"", "404 Not Found", "Upload-Offset: 0")
    more = [answer(b"", "202 Accepted", f"Upload-Offset: {at}") for at in (64, 128, 192)]
    later = answer({"kind": "busy", "detail": "later"}, "503 Service Unavailable", "Retry-After: 1")
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    scripts: list[tuple[int, bytes]] = [
        (0, answer({"version": "0", "panels": []})),
        (0, chunked),
        (0, later + answer({})),
        (0, answer({"kind": "unauthorized", "detail": "give a token"}, "401 Unauthorized")),
        (0, b"HTTP/1.1 200 OK\r\n\r\n{}" + NEXT + answer({})),
        (128, answer({}, "503 Service Unavailable", "Retry-After: 0")),
        (1, missing + b"".join(more) + answer(b"", "201 Created")),
        (
            1,
            answer(b"", "404 Not Found", "Upload-Offset: 100")
            + answer(b"", "409 Conflict", "Upload-Offset: 150"),
        ),
        (1, answer(b"", "200 OK")),
        (131, missing + more[0]),
        (2, fetched),
        (2, answer(FETCHED, "200 OK")),
        (
            3,
            answer(job, "202 Accepted")
            + answer({**job, "state": "running", "done": 2})
            + answer(done)
            + fetched,
        ),
        (3, answer(failed)),
        (3, answer({**job, "state": "cancelled"})),
        (128 + 5, answer({**job, "state": "running"})),
        (4, answer(b"panel")),
    ]
    return [bytes([first]) + script for first, script in scripts]


def mutate(data: bytes, seed: int) -> bytes:
    """Changes a number, a line or a part of an answer."""
    rng = random.Random(seed)
    out = data
    for _ in range(rng.randint(1, 3)):
        out = _changed(out or b"\0", rng)
    return out


WORDS = [
    b"Content-Length: 99999999999999999999",
    b"Transfer-Encoding: chunked",
    b"Retry-After: 1e9",
    b"Upload-Offset: 64",
    b"Content-Range: bytes 0-63/200",
    b"HTTP/1.1 100 Continue\r\n",
    b"HTTP/1.1 200 OK\r\n\r\n",
    NEXT,
    b"[" * 2000,
    b'{"state": "running", "id": "00000000000000000000000000000000", "done": 0, "steps": 0}',
    b"\xff\xfe",
    b"NaN",
    b'{"kind": "shape", "detail": "\\u001b[2J' + b"x" * 3000 + b'"}',
    b"HTTP/1.1 500 \x1b[2J\r\n",
    b"ffffffffffffffff\r\n",
]


def _changed(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    lines = data.split(b"\r\n")
    line = rng.randrange(len(lines))
    match rng.randrange(8):
        case 0:
            return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        case 1:
            return data[:at] + data[at + rng.randint(1, 20) :]
        case 2:
            return data[:at] + rng.choice(WORDS) + data[at:]
        case 3:
            lines[line] = rng.choice(WORDS)
        case 4:
            lines.insert(line, rng.choice(lines))
        case 5:
            del lines[line]
        case 6:
            digits = [i for i, c in enumerate(data) if chr(c).isdigit()] or [at]
            where = rng.choice(digits)
            number = rng.choice(
                [b"0", b"-1", b"9" * 30, b"1e9", b"64", b"20", str(rng.randrange(300)).encode()]
            )
            return data[:where] + number + data[where + 1 :]
        case _:
            return bytes([rng.randrange(256)]) + data[1:]
    return b"\r\n".join(lines)
