"""Where encrypted matrices are computed with: the processor, and cards."""

from __future__ import annotations

import ctypes
import os
import platform
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from . import _core
from ._errors import InputError

__all__ = ["CPU", "Device", "devices", "kernels", "named"]

CPU = "cpu"


@dataclass(frozen=True)
class Device:
    """A place to compute: `server.to(device)`, or by its name.

    `memory` is in bytes, None where it is not known. Where there is no card, `missing` says what lacks, and
    what to do about it. Whether there are kernels for a card shows when it is first used.
    """

    name: str
    model: str
    memory: int | None
    missing: str | None = None


def devices() -> list[Device]:
    """The processor, and the cards that the driver shows.

    Where there is none, an entry "cuda" says in `missing` why: no driver, one that is too old, no card.

    >>> devices()[0].name
    'cpu'
    """
    found, missing = _core.devices()
    cards = [Device(*card) for card in found]
    if missing is not None:
        cards.insert(0, Device("cuda", "", None, missing))
    return [Device(CPU, platform.processor() or platform.machine(), _memory()), *cards]


def named(device: Any) -> str:
    """The name of a device that is given by its name or as itself."""
    name = device.name if isinstance(device, Device) else device
    if not isinstance(name, str):
        raise InputError(f"a device is 'cpu', 'cuda', 'cuda:1' or one of sudare.devices(), not {device!r}")
    return name


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def kernels() -> tuple[str, str | None]:
    """The folder of this package's kernels, and where others are kept once compiled, if that can be made.

    The compiler of the extra `sudare[cuda]` is loaded on the way.
    """
    _load_compiler()
    ahead = str(Path(__file__).parent / "_cuda")
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(base) / "sudare"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # No home, or one that cannot be written to.
        return ahead, None
    return ahead, str(folder)


def _load_compiler() -> None:
    """Loads NVRTC from where pip installs it. A later look for it by its name finds it in the process."""
    found = find_spec("nvidia")
    folders = [] if found is None else [Path(folder) for folder in found.submodule_search_locations or []]
    # What it is made of first: it looks for that by its name, too.
    for pattern in ("*/lib/libnvrtc-builtins.so.*", "*/lib/libnvrtc.so.*"):
        for library in (path for folder in folders for path in sorted(folder.glob(pattern))):
            try:
                ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
            except OSError:
                continue  # Of another system: the error that names what lacks comes where it is used.
