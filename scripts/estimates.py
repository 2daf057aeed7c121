#!/usr/bin/env python3
"""Estimates what attacks on every shipped parameter set cost, and stores it under docs/estimates.

The sets come from the code (`cargo run -p sudare-he --example sets`), the costs from the lattice estimator, which is not
part of this repository. It needs Sage, or passagemath from PyPI:

    git clone https://github.com/malb/lattice-estimator ../lattice-estimator
    git -C ../lattice-estimator checkout COMMIT           # the constant below
    python3 -m venv ../estimates && ../estimates/bin/pip install passagemath-standard scipy
    ../estimates/bin/python scripts/estimates.py --estimator ../lattice-estimator

Rows that are stored and have not changed are kept (--again runs them too); --page only writes the page anew.
"""

import argparse
import datetime
import json
import math
import platform
import subprocess
import sys
from pathlib import Path

import dual_bound
import primal_hybrid

# The lattice estimator, https://github.com/malb/lattice-estimator.
COMMIT = "3e48ef421ec256afddb3e7d2249a77eab6e9ba12"
ROOT = Path(__file__).resolve().parent.parent
STORED = ROOT / "docs/estimates/estimates.json"
PAGE = ROOT / "docs/estimates/README.md"

# Bits beyond which the slowest attack is not run.
FAR = 400

# What the commit itself documents for Kyber-512 (estimator/lwe.py), to a tenth of a bit.
CONTROL = {"usvp": 143.8, "bdd": 140.2, "dual_hybrid": 139.7}


def shipped():
    """The problems of the code."""
    command = ["cargo", "run", "--quiet", "--locked", "-p", "sudare-he", "--example", "sets"]
    out = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def modulus(log_q):
    """The integer next to 2^log_q, to 52 bits."""
    whole, part = divmod(log_q, 1)
    head = round(2 ** (part + 52))
    shift = int(whole) - 52
    return head << shift if shift >= 0 else max(2, (head + (1 << (-shift - 1))) >> -shift)


class Estimator:
    """The attacks, in the estimator's default cost model."""

    def __init__(self, folder, source):
        self.source = source or self.checkout(folder)
        sys.path.insert(0, str(folder))
        import estimator
        from sage.all import log

        self.module, self.log = estimator, log
        found = self.attacks(estimator.schemes.Kyber512, ("usvp", "bdd", "dual_hybrid"))
        off = {k: v for k, v in found.items() if abs(v - CONTROL[k]) > 0.06}
        if off:
            sys.exit(f"estimates: Kyber-512 comes out at {off}, and commit {COMMIT[:7]} documents {CONTROL}")

    @staticmethod
    def checkout(folder):
        """Refuses another commit, and changed files."""
        git = ["git", "-C", str(folder)]
        found = subprocess.run(
            [*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True
        ).stdout.strip()
        changed = subprocess.run(
            [*git, "status", "--porcelain"], check=True, capture_output=True, text=True
        ).stdout
        if found != COMMIT or changed.strip():
            sys.exit(
                f"estimates: {folder} is at {found}{' with changes' if changed.strip() else ''}; check out {COMMIT}"
            )
        return f"a checkout of commit {COMMIT[:7]}"

    def distribution(self, d, n):
        nd = self.module.ND
        if d == "binary":
            return nd.Uniform(0, 1)
        if d == "ternary":
            return nd.Uniform(-1, 1)
        if d == "half_zero":
            return nd.SparseTernary(n // 4, n // 4, n)
        ((kind, value),) = d.items()
        if kind == "gaussian":
            return nd.DiscreteGaussian(value)
        if kind == "uniform":
            return nd.Uniform(-value, value)
        if kind == "tuniform":
            return nd.TUniform(value)
        if kind == "weight":
            return nd.SparseTernary(value // 2, value // 2, n)
        raise ValueError(f"no distribution {d}")

    def attacks(self, params, names):
        lwe = self.module.LWE
        known = {
            "usvp": lwe.primal_usvp,
            "bdd": lwe.primal_bdd,
            "dual_hybrid": lwe.dual_hybrid,
        }
        return {name: round(float(self.log(known[name](params)["rop"], 2)), 2) for name in names}

    def estimate(self, problem):
        n = problem["dimension"]
        params = self.module.LWE.Parameters(
            n=n,
            q=modulus(problem["log_q"]),
            Xs=self.distribution(problem["secret"], n),
            Xe=self.distribution(problem["error"], n),
        )
        bits = self.attacks(params, ["usvp", "bdd"])
        if problem["kind"] == "sparse":
            # The estimator's hybrid attacks know no rotations, and its dual one takes hours for sparse secrets.
            sparse = (n, problem["log_q"], problem["secret"]["weight"], problem["error"]["gaussian"])
            bits["rotated_hybrid"] = round(primal_hybrid.least(*sparse), 2)
            bits["dual_bound"] = round(dual_bound.least(*sparse), 2)
        else:
            bits["dual_hybrid"] = None
            if min(bits["usvp"], bits["bdd"]) < FAR:
                bits |= self.attacks(params, ["dual_hybrid"])
        bits = {k: v if v is not None and math.isfinite(v) else None for k, v in bits.items()}
        return {
            "problem": problem,
            "bits": bits,
            "least": min((v for v in bits.values() if v is not None), default=None),
        }


def words(d):
    """A distribution for people."""
    if isinstance(d, str):
        return d.replace("_", " ")
    ((kind, value),) = d.items()
    if kind == "gaussian":
        return f"σ = {value}" if value < 1e4 else f"σ = 2^{math.log2(value):.2f}"
    if kind == "weight":
        return f"ternary, weight {value}"
    return f"uniform ±{value}" if kind == "uniform" else f"TUniform({value})"


ATTACKS = {
    "usvp": "uSVP",
    "bdd": "BDD",
    "dual_hybrid": "dual hybrid",
    "rotated_hybrid": "hybrid, rotations",
    "dual_bound": "dual, at least",
}


def shown(least):
    """Bits for people; nothing found is over 500."""
    return "over 500" if least is None else f"{least:.2f}"


def table(rows):
    """Rows of one kind, all with the same attacks."""
    names = list(rows[0]["bits"])
    head = ["problem", "n", "log2 q", "secret", "error", *(ATTACKS[n] for n in names), "least", "claim"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        p = row["problem"]
        cells = [p["name"], str(p["dimension"]), f"{p['log_q']:.6g}", words(p["secret"]), words(p["error"])]
        cells += ["" if row["bits"][n] is None else f"{row['bits'][n]:.2f}" for n in names]
        cells += [shown(row["least"]), str(p["claim"]) if p["claim"] else "none"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


SECTIONS = {
    "limit": """## Limits

The rows of both tables in `sudare_rlwe::security` (source: ePrint 2024/463) at σ = 3.19, and TFHE's least noise in
`sudare_tfhe::params::security` at its table's dimensions and between them. These are the weakest problems that are accepted
with a claim. The guidelines' limits are taken as published. By this estimator a few fall short of their claims, by up to
a quarter of a bit, which is less than estimates of this kind know; the test allows that much and no more.""",
    "set": """## Sets

Every named set: the ring of its evaluation or bootstrapping keys, and for TFHE the LWE of its dimension n and the rows
of its key switch. Modules count as LWE of the whole dimension.""",
    "published": """## Sets of other libraries

`sudare_tfhe::params::published`: nothing is claimed here.""",
    "sparse": """## Sparse secrets

The limits for sparse ternary secrets, each at the least weight that it holds for, and the ephemeral keys of CKKS
bootstrapping, modulo q_0·p. The attacks for sparse secrets guess part of the key, and one sample of a ring has N rotations
to guess in, under one reduced lattice (ePrint 2026/279, 2026/366). *Hybrid, rotations* guesses for a primal attack and meets
in the middle (Howgrave-Graham, Crypto 2007; ePrint 2019/1019; `scripts/primal_hybrid.py`). *Dual, at least* is a bound
from below on every dual hybrid attack that guesses (ePrint 2017/047, 2019/1114, 2020/515): guesses of the part, for all
rotations, are taken to be found for the square root of their number, or for one operation a dual vector where these are
more, and never to be lost to the error (`scripts/dual_bound.py`). No known attack comes near that bound.""",
}


def page(stored):
    """The page of what is stored."""
    run = stored["run"]
    text = f"""# Lattice estimates

Written by `scripts/estimates.py` from `estimates.json` beside it; a test (`crates/he/tests/it/estimates.rs`) holds both
against the code, so that a set or a limit cannot change unnoticed.

- **Estimator**: [lattice-estimator](https://github.com/malb/lattice-estimator), commit `{stored["commit"]}`.
- **Cost model**: {stored["model"]}. Figures are log2 of operations, classical; samples are unlimited.
- **Run**: {run["date"]}, {run["software"]}. {run["source"]}
- **Control**: Kyber-512 has to come out as that commit documents: {CONTROL["usvp"]} (uSVP), {CONTROL["bdd"]} (BDD),
  {CONTROL["dual_hybrid"]} (dual hybrid).

`least` is the least of the attacks that were run. Blank: the attack finds nothing with block sizes to 1754, over 500 bits;
or, for the dual hybrid, the others are over {FAR} bits. Not run: algebraic (Arora–Ge) and BKW attacks, which are far above
these for such errors, and attacks on the structure of rings, of which none is known that helps here.
"""
    for kind, intro in SECTIONS.items():
        rows = [e for e in stored["estimates"] if e["problem"]["kind"] == kind]
        if rows:
            text += f"\n{intro}\n\n{table(rows)}\n"
    return text


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--estimator", type=Path, help="a checkout of the lattice estimator")
    parser.add_argument(
        "--source", help="what the estimator is, where it is no checkout of the commit: stored, and shown"
    )
    parser.add_argument("--again", action="store_true", help="run the rows that are stored too")
    parser.add_argument(
        "--page", action="store_true", help="write the page from what is stored, and nothing else"
    )
    options = parser.parse_args()
    stored = json.loads(STORED.read_text()) if STORED.exists() else {"commit": "", "estimates": []}
    if not options.page:
        if options.estimator is None:
            parser.error("--estimator names a checkout of the lattice estimator")
        estimator = Estimator(options.estimator, options.source)
        kept = {}
        if stored["commit"] == COMMIT and not options.again:
            kept = {json.dumps(e["problem"]): e for e in stored["estimates"]}

        def run(problems):
            rows = []
            for problem in problems:
                row = kept.get(json.dumps(problem)) or estimator.estimate(problem)
                print(f"{shown(row['least']):>8}  {problem['name']}", flush=True)
                rows.append(row)
            return rows

        stored = {
            "commit": COMMIT,
            "model": "RC.MATZOV, the estimator's default, with the geometric series assumption",
            "run": {
                "date": datetime.date.today().isoformat(),
                "software": f"Python {platform.python_version()}",
                "source": estimator.source,
            },
            "estimates": run(shipped()),
        }
        STORED.parent.mkdir(exist_ok=True)
        STORED.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n")
    PAGE.write_text(page(stored))


if __name__ == "__main__":
    main()
