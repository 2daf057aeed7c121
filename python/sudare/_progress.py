"""A line that tells how far long work has come, at a terminal only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[int, int], None]
WIDTH = 30
# Work that is over sooner says nothing.
PATIENCE = 0.5


@contextmanager
def progress(title: str) -> Iterator[Report | None]:
    """Yields a callable of steps done and steps in all, or `None` where nobody looks."""
    stream = sys.stderr
    if stream is None or not stream.isatty():
        yield None
        return
    started, shown = time.monotonic(), 0.0

    def report(done: int, steps: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - started < PATIENCE or (now - shown < 0.1 and done < steps):
            return
        shown = now
        full = WIDTH * done // max(steps, 1)
        stream.write(f"\r{title} [{'#' * full}{'.' * (WIDTH - full)}] {done}/{steps} {now - started:.0f} s")
        stream.flush()

    try:
        yield report
    finally:
        if shown:
            stream.write("\r\x1b[K")
            stream.flush()
