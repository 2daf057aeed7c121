"""Whatever `sudare.load` reads is refused by an error of its own, or saved to bytes that load as the same."""

from __future__ import annotations

import io
import json
import random
from functools import cache
from typing import Any

import numpy as np
import sudare as sd


@cache
def _plan() -> sd.Plan:
    return sd.table((5, 2), max_abs=[10, 1])


def seeds() -> list[bytes]:
    """Plans, statistics, and the head of every object that a file begins with."""
    plan = _plan()
    client = sd.Client(plan)
    server = client.server()
    x = np.array([[1, 0.5], [2, 0.25], [3, 0.75], [4, 0.5], [5, 1.0]])
    found = client.decrypt(server.moments(client.encrypt(x)))
    saved = [_saved(thing) for thing in (plan, found, found.named(["age", "größe"]), found[["0"]])]
    # Of large objects the head, which says what they are.
    heads = [head + bytes(64) for head in (_saved(client.encrypt(x))[:600], b"SUDARE\x1a\n\x01\x00")]
    return saved + heads


def _saved(thing: Any) -> bytes:
    thing.save(file := io.BytesIO())
    return file.getvalue()


def mutate(data: bytes, seed: int) -> bytes:
    """Changes a value of a text of JSON, or anything."""
    rng = random.Random(seed)
    try:
        given = json.loads(data) if rng.random() < 0.7 else None
    except ValueError:
        given = None
    if not isinstance(given, dict) or not given:
        return _changed(data, rng)
    name = rng.choice(sorted(given))
    edge: Any = rng.choice([0, -1, 1e308, 10**30, float("nan"), None, "x", [], [[]], {}, [0, 1], [[0, 1], [2, 3]], True])
    match rng.randrange(4):
        case 0:
            given[name] = edge
        case 1:
            del given[name]
        case 2:
            given[rng.choice(["more", name + "x"])] = edge
        case _:
            inner = given[name]
            if isinstance(inner, list) and inner:
                inner[rng.randrange(len(inner))] = edge
    return json.dumps(given).encode()


def _changed(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data or b"\0")
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(out))
        match rng.randrange(5):
            case 0:
                out[at] ^= 1 << rng.randrange(8)
            case 1:
                edge = rng.choice([0, 1, 0x7F, 0xFF, 0xFFFF, 1 << 31, (1 << 64) - 1])
                out[at : at + 8] = edge.to_bytes(8, rng.choice(["little", "big"]))[: len(out) - at]
            case 2:
                del out[at : at + rng.randint(1, 40)]
            case 3:
                out[at:at] = bytes(out[at : at + rng.randint(1, 40)])
            case _:
                out[at] = rng.randrange(256)
        out = out or bytearray(1)
    return bytes(out)


def check(data: bytes) -> bool:
    """Loads it; whether it was taken."""
    return _load(data)


def _load(data: bytes) -> bool:
    try:
        # Neither does a plan to belong to change what an error is.
        found = sd.load(data, _plan())
        sd.load(io.BytesIO(data), _plan())
    except sd.SudareError as error:
        assert 0 < len(str(error)) < 2000, "an error says what it is, and not the whole file again"
        assert str(error).replace("\n", "").isprintable(), "an error is not for a terminal"
        return False
    shown = repr(found)
    assert all(c.isprintable() or c == "\n" for c in shown), "it is not for a terminal"
    saved = _saved(found)
    again = sd.load(saved, _plan())
    assert _saved(again) == saved, "what was saved is loaded as something else"
    if isinstance(found, sd.Moments):
        assert found.rows >= 2
        assert all(np.isfinite(getattr(found, name)).all() for name in ("mean", "covariance", "std"))
        found.correlation_error, found[[0]]
    return True
