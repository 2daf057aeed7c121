"""What the scripts say of the machine that they run on."""

import platform
from pathlib import Path


def processor() -> str:
    """The processor's name, with family and model where the system has them."""
    known = Path("/proc/cpuinfo")
    if not known.exists():
        return platform.processor()
    found: dict[str, str] = {}
    for line in known.read_text().splitlines():
        name, _, value = line.partition(":")
        found.setdefault(name.strip(), value.strip())
    of = [f"{k.removeprefix('cpu ')} {found[k]}" for k in ("cpu family", "model") if k in found]
    return ", ".join([found.get("model name", platform.processor()), " ".join(of)]).rstrip(", ")
