"""Where encrypted matrices are computed with: the processor, and cards."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path

from . import _core

__all__ = ["CPU", "Device", "devices", "kernels"]

CPU = "cpu"


@dataclass(frozen=True)
class Device:
    """A place to compute: `server.to(device.name)`.

    `memory` is in bytes, None where it is not known. A card that cannot be used has `missing`: what lacks,
    and what to do about it.
    """

    name: str
    model: str
    memory: int | None
    missing: str | None = None


def devices() -> list[Device]:
    """The processor, and the cards that can be used.

    Where there is none, an entry "cuda" says in `missing` why: no driver, one that is too old, no card.

    >>> devices()[0].name
    'cpu'
    """
    found, missing = _core.devices()
    cards = [Device(*card) for card in found]
    if missing is not None:
        cards.insert(0, Device("cuda", "", None, missing))
    return [Device(CPU, platform.processor() or platform.machine(), _memory()), *cards]


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def kernels() -> str:
    """The folder where kernels that had to be compiled are kept for the next start."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(base) / "sudare"
    folder.mkdir(parents=True, exist_ok=True)
    return str(folder)
