"""The memory that this process may still take, compared with what is asked for before it is taken."""

from __future__ import annotations

from pathlib import Path

from ._errors import OutOfMemoryError

__all__ = ["available", "require"]

#: What is asked for is not looked up.
SMALL = 64 << 20


def require(nbytes: int, what: str, remedy: str) -> None:
    """Refuses what does not fit into memory.

    Raises `OutOfMemoryError`.
    """
    room = available() if nbytes > SMALL else None
    if room is not None and nbytes > room:
        raise OutOfMemoryError(
            f"{what} takes {nbytes / 1e9:.1f} GB, and {max(room, 0) / 1e9:.1f} GB are left; {remedy}"
        )


def available() -> int | None:
    """Bytes that can still be had: by the machine, the process's limit and the container's."""
    rooms = [room for room in (_machine(), _process(), _container()) if room is not None]
    return min(rooms, default=None)


def _machine() -> int | None:
    for line in _text("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return None


def _process() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    pages = _text("/proc/self/statm").split()
    if limit == resource.RLIM_INFINITY or not pages:
        return None
    return limit - int(pages[0]) * resource.getpagesize()


def _container(folder: Path = Path("/sys/fs/cgroup")) -> int | None:
    limit, used = _text(folder / "memory.max").strip(), _text(folder / "memory.current").strip()
    if not (limit.isdecimal() and used.isdecimal()):
        return None
    # Pages of files that were read count as used, and make room when it is wanted.
    counts = dict(line.split() for line in _text(folder / "memory.stat").splitlines())
    files = sum(int(counts.get(name, 0)) for name in ("active_file", "inactive_file"))
    return int(limit) - int(used) + files


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
