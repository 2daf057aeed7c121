"""Whatever a server answers, its client ends within its limits: by an error of its own, or content.

An input is a byte that says what is asked for and how the answers end, and then the answers, with `NEXT`
between two connections.
"""

from __future__ import annotations

import json
import random
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from typing import Any

import sudare as sd
from sudare import _remote

NEXT = b"\n=====\n"
TOKEN = "sudare_token"
# Seconds of an answer, a piece and a job, and tries.
PATIENCE = (0.3, 0.3, 0.3, 2)
DATA = bytes(range(200))
FETCHED = b"what the server has"


class _Server:
    """Answers each connection with the next part of a script, whatever it is asked; after the last one that again."""

    def __init__(self, parts: list[bytes], endless: bool) -> None:
        self.parts, self.endless, self.connections = parts, endless, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                line, _ = self.listener.accept()
            except OSError:
                return
            part = self.parts[min(self.connections, len(self.parts) - 1)]
            self.connections += 1
            threading.Thread(target=self._speak, args=(line, part), daemon=True).start()

    def _speak(self, line: socket.socket, part: bytes) -> None:
        line.settimeout(2 * PATIENCE[0])
        with line, suppress(OSError):
            line.recv(1 << 16)
            line.sendall(part)
            while self.endless and part:
                line.sendall(part)
            line.shutdown(socket.SHUT_WR)
            while line.recv(1 << 16):
                pass


def _config(remote: sd.Remote) -> bool:
    return isinstance(remote.config(), dict)


def _send(remote: sd.Remote) -> bool:
    return remote.send(DATA) == sha256(DATA).hexdigest()


def _fetch(remote: sd.Remote) -> bool:
    return remote.fetch(sha256(FETCHED).hexdigest()) == FETCHED


def _run(remote: sd.Remote) -> bool:
    found = remote.run({"kind": "compute", "plan": "0" * 64, "operands": []}, lambda done, steps: _counted(done, steps))
    return isinstance(found, bytes)


def _counted(done: int, steps: int) -> None:
    assert 0 <= done < 1 << 64
    assert 0 < steps < 1 << 64


def _panel(remote: sd.Remote) -> bool:
    return remote.panel("p").sites is not None


ASKED: list[Callable[[sd.Remote], bool]] = [_config, _send, _fetch, _run, _panel]


def check(data: bytes) -> bool:
    """Asks for something and gives the answers; whether the client was content."""
    head, script = data[:1] or b"\0", data[1:]
    asked, endless = ASKED[head[0] % len(ASKED)], head[0] >= 128
    _remote.PATIENCE, server = PATIENCE, _Server(script.split(NEXT), endless)
    try:
        content = asked(sd.remote(server.url, token=TOKEN))
    except sd.SudareError as error:
        assert str(error), "an error says what it is"
        assert len(str(error)) < 1100, "an error is the server's answer again"
        assert str(error).isprintable(), "an error is not for a terminal"
        assert TOKEN not in str(error)
        return False
    finally:
        _remote.PATIENCE = None
        server.listener.close()
        assert server.connections < 200, "a server keeps its client asking"
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
