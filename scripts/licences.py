"""Names the installed Python packages whose licence is not one of those below; fails if there are any."""

import sys
from importlib.metadata import Distribution, distributions

# As packages write them: SPDX expressions, classifiers, older free text. None is part of what Sudare ships; GPL is that of tools that run beside it.
ALLOWED = {
    "Apache Software License",
    "Apache-2.0",
    "Apache-2.0 OR BSD-2-Clause",
    "BSD",
    "BSD License",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSD-3-Clause AND 0BSD AND MIT AND Zlib AND CC0-1.0",
    "GPL-2.0-only",
    "GNU General Public License v2 or later (GPLv2+) AND GNU Lesser General Public License v2 or later (LGPLv2+) AND "
    "Mozilla Public License 1.1 (MPL 1.1)",
    "MIT",
    "MIT License",
    "MIT-CMU",
    "MIT OR Apache-2.0",
    "MPL-2.0",
    "Mozilla Public License 2.0 (MPL 2.0)",
    "PSF-2.0",
    "Python Software Foundation License",
}


def licence(package: Distribution) -> str:
    """What its metadata say, the most exact first."""
    metadata = package.metadata
    classifiers = [c.split(" :: ")[-1] for c in metadata.get_all("Classifier") or [] if c.startswith("License ::")]
    return metadata.get("License-Expression") or " AND ".join(classifiers) or metadata.get("License") or "none"


packages = {p.metadata["Name"]: licence(p) for p in distributions() if p.metadata["Name"] != "sudare"}
refused = {name: said for name, said in sorted(packages.items()) if said not in ALLOWED}
for name, said in refused.items():
    print(f"{name}: {said.splitlines()[0]!r} is not a licence that scripts/licences.py lists", file=sys.stderr)
print(f"{len(packages)} packages, {len(refused)} refused")
sys.exit(bool(refused))
