"""The command `sudare`, as the package installs it and as `python -m sudare` runs it."""

from __future__ import annotations

import sys

from ._core import command

__all__ = ["main"]


def main() -> int:
    """Run the command with the words of the command line; returns its exit code."""
    code = command(["sudare", *sys.argv[1:]])
    if code is None:
        sys.exit("sudare: this build of the package has no command; `make command` builds one that has it")
    return code


if __name__ == "__main__":
    sys.exit(main())
