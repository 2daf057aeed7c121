"""The command `sudare`, as the package installs it and as `python -m sudare` runs it."""

from __future__ import annotations

import sys

from ._core import command

__all__ = ["main"]


def main() -> int:
    """Run the command with the words of the command line; returns its exit code."""
    return command(["sudare", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
