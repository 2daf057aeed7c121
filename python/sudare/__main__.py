"""`python -m sudare` runs the command `sudare`, a wheel of its own: pip install "sudare[command]"."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig

__all__ = ["main"]


def main() -> int:
    """Run the command with the words of the command line; returns its exit code."""
    folders = (sysconfig.get_path("scripts"), os.path.dirname(sys.executable), None)
    found = next(filter(None, (shutil.which("sudare", path=folder) for folder in folders)), None)
    if found is None:
        sys.exit('sudare: the command is a wheel of its own: pip install "sudare[command]"')
    if os.name == "posix":
        os.execv(found, ["sudare", *sys.argv[1:]])
    return subprocess.run([found, *sys.argv[1:]], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
