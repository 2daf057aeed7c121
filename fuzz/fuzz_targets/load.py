"""Whatever `sudare.load` reads is refused by an error of its own, or saved to bytes that load as the same."""

from __future__ import annotations

import io
import random
import struct
import zipfile
import zlib
from functools import cache
from typing import Any

import numpy as np
import sudare as sd

_END, _CENTRAL, _LOCAL = b"PK\x05\x06", b"PK\x01\x02", b"PK\x03\x04"


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


def resealed(data: bytes) -> bytes:
    """An archive with the checksums of what its parts hold now, as whoever changes them can write it."""
    out = bytearray(data)
    at = out.find(_CENTRAL)
    while at >= 0 and at + 46 <= len(out):
        size, name = struct.unpack_from("<I", out, at + 20)[0], struct.unpack_from("<HHH", out, at + 28)
        local = struct.unpack_from("<I", out, at + 42)[0]
        if local + 30 <= len(out) and out[local : local + 4] == _LOCAL:
            start = local + 30 + sum(struct.unpack_from("<HH", out, local + 26))
            checksum = struct.pack("<I", zlib.crc32(out[start : start + size]))
            out[local + 14 : local + 18] = out[at + 16 : at + 20] = checksum
        at = out.find(_CENTRAL, at + 46 + sum(name))
    return bytes(out)


def mutate(data: bytes, seed: int) -> bytes:
    """Changes an array of an archive, or anything."""
    rng = random.Random(seed)
    if not data.startswith(b"PK") or rng.random() < 0.3:
        return _changed(data, rng)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
    except Exception:
        return resealed(_changed(data, rng))
    if parts:
        name = rng.choice(sorted(parts))
        part = parts.pop(name)
        match rng.randrange(6):
            case 0:
                name += ".npy"
            case 1:
                part = part.replace(b"<f8", rng.choice([b">f8", b"<c8", b"|O8", b"<i8", b"|V8", b"<M8"]))
            case 2:
                digit = str(rng.choice([0, 1, 3, 10**9, 10**30, -1])).encode()
                part = part.replace(rng.choice([b"2", b"0"]), digit, 1)
            case 3:
                part = _changed(part, rng)
            case _:
                # A number: half of an array's parts are its header.
                at = 128 + 4 * rng.randrange(max(1, (len(part) - 128) // 4))
                edge = rng.choice(
                    [0, 1, 0xFFFF, 0xD800, 1 << 31, 0x7FF00000, 0x7FEFFFFF, 0xFFFFFFFF, ord("a")]
                )
                part = part[:at] + struct.pack("<I", edge) + part[at + 4 :]
        parts[name] = part
    kind = rng.choice([zipfile.ZIP_STORED] * 5 + [zipfile.ZIP_DEFLATED])
    with zipfile.ZipFile(file := io.BytesIO(), "w", kind) as archive:
        for name, part in parts.items():
            archive.writestr(zipfile.ZipInfo(name), part)
    return file.getvalue()


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
    """Loads it, and with its checksums made right; whether it was taken."""
    taken = _load(data)
    other = resealed(data) if data.startswith(b"PK") else data
    return taken or (other != data and _load(other))


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
