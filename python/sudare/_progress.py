"""How far long work has come: a line at a terminal, a bar in a notebook, nothing anywhere else.

Work of which only the time is known has a clock for a bar. What would take long is told before it is done.
"""

from __future__ import annotations

import html
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ._errors import CostWarning

__all__ = ["clock", "forecast", "forecasting", "progress"]

Report = Callable[[int, int], None]
WIDTH = 30
# Work that is over sooner says nothing.
PATIENCE = 0.5
#: Seconds and bytes of which a warning tells before they are spent, and steps that are too few to tell.
LONG, LARGE, FEW = 10.0, 1e9, 8

# What is shown already; work inside it shows nothing of its own.
_shown: ContextVar[bool] = ContextVar("shown", default=False)


def forecast(what: str, seconds: float, nbytes: float = 0.0, advice: str = "") -> None:
    """Warns of work that takes more than ten seconds or a gigabyte, and says what would make it less."""
    parts = []
    if seconds > LONG:
        parts.append(f"about {duration(seconds)}")
    if nbytes > LARGE:
        parts.append(f"about {nbytes / 1e9:.1f} GB")
    if parts:
        words = f"{what} takes {' and '.join(parts)}{'; ' if advice else ''}{advice}"
        warnings.warn(words, CostWarning, stacklevel=_callers())


def _callers() -> int:
    """Frames up to the first outside of this package and NumPy: the line that a warning is about."""
    depth = 1
    while True:
        try:
            name = sys._getframe(depth).f_globals.get("__name__", "")
        except ValueError:
            return depth
        if not name.startswith(("sudare", "numpy")) and name != "contextlib":
            return depth
        depth += 1


def duration(seconds: float) -> str:
    """Seconds for people."""
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.2g} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _notebook() -> Any:
    """What shows things in a notebook, if this is one."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    if shell is None or type(shell).__name__ != "ZMQInteractiveShell":
        return None
    from importlib import import_module

    return import_module("IPython.display")


class _Terminal:
    def __init__(self) -> None:
        self._stream = sys.stderr

    def show(self, title: str, part: float, text: str) -> None:
        full = int(WIDTH * part)
        self._stream.write(f"\r\x1b[K{title} [{'#' * full}{'.' * (WIDTH - full)}] {text}")
        self._stream.flush()

    def clear(self) -> None:
        self._stream.write("\r\x1b[K")
        self._stream.flush()


class _Notebook:
    def __init__(self, display: Any) -> None:
        self._display, self._handle = display, None

    def show(self, title: str, part: float, text: str) -> None:
        bar = f'<progress value="{part:.3f}" max="1"></progress>'
        content = self._display.HTML(f"<div>{html.escape(title)} {bar} {html.escape(text)}</div>")
        if self._handle is None:
            self._handle = self._display.display(content, display_id=True)
        else:
            self._handle.update(content)

    def clear(self) -> None:
        if self._handle is not None:
            self._handle.update(self._display.HTML(""))


def _place() -> _Terminal | _Notebook | None:
    """Where somebody looks."""
    display = _notebook()
    if display is not None:
        return _Notebook(display)
    stream = sys.stderr
    return _Terminal() if stream is not None and stream.isatty() else None


@contextmanager
def progress(title: str) -> Iterator[Report | None]:
    """Yields a callable of steps done and steps in all, or `None` where nobody looks."""
    place = None if _shown.get() else _place()
    if place is None:
        yield None
        return
    started, shown = time.monotonic(), 0.0

    def report(done: int, steps: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - started < PATIENCE or (now - shown < 0.1 and done < steps):
            return
        shown = now
        place.show(title, done / max(steps, 1), f"{done}/{steps} {now - started:.0f} s")

    token = _shown.set(True)
    try:
        yield report
    finally:
        _shown.reset(token)
        if shown:
            place.clear()


@contextmanager
def clock(title: str, seconds: float | None = None) -> Iterator[None]:
    """A bar for work that says nothing of itself, by the time that it should take if that is known."""
    place = None if _shown.get() else _place()
    if place is None:
        yield
        return
    started, over, shown = time.monotonic(), threading.Event(), False

    def tick() -> None:
        nonlocal shown
        while not over.wait(PATIENCE if not shown else 0.2):
            shown, past = True, time.monotonic() - started
            of = "" if seconds is None else f" of about {duration(seconds)}"
            part = 0.0 if not seconds else min(past / seconds, 0.99)
            place.show(title, part, f"{past:.0f} s{of}")

    token = _shown.set(True)
    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        _shown.reset(token)
        if shown:
            place.clear()


@contextmanager
def forecasting(title: str, what: str) -> Iterator[Report]:
    """Yields a callable of steps done and steps in all, which warns if they take long, and has a bar."""
    with progress(title) as shown:
        started, told = time.monotonic(), False

        def report(done: int, steps: int) -> None:
            nonlocal told
            spent = time.monotonic() - started
            # A thirtieth of a long time tells how long all takes; a few elements are done before that.
            if not told and steps > FEW and done and spent > LONG / 30:
                told = True
                forecast(what, spent * steps / done)
            if shown is not None:
                shown(done, steps)

        yield report
