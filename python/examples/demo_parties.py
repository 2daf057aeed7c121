"""Three hospitals test features of real tumours and fit one model, and none of them sees another's rows.

The data are those of demo.py, split by rows. Each hospital is a process with its own rows and its own
folder; `sudare serve`, a process without any secret, carries their messages, combines their keys, and adds
what they encrypt. Any two hospitals decrypt a sum, none alone, and each sum is for the three of them. One
hospital is killed twice and goes on from its folder.

First come sums, squares and counts by class: means and Welch's t. From the means follow the scales of a
logistic regression, whose steps (Newton's) need the sum of the hospitals' gradients and second derivatives,
and no row. In the end everything is compared with NumPy on all rows.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import sudare as sd
from demo import measurements
from demo_server import server
from numpy.typing import NDArray

Floats = NDArray[np.float64]
T = TypeVar("T")
NAMES = ["north", "south", "west"]
#: Who decrypts, in turn.
PAIRS = [["north", "west"], ["south", "west"], ["north", "south"]]
FEATURES, STEPS = 30, 8
#: More rows than there are, by which sums stay under one; and the largest standardised value that is taken.
ROWS, LARGEST = 600.0, 16.0
WANTED_ERROR = 1e-10
SHAPE = (FEATURES + 2, FEATURES + 1)


def wait(what: Callable[[], T | None]) -> T:
    """Waits for what another process does."""
    until = time.monotonic() + 600
    while (found := what()) is None or found is False:
        if time.monotonic() > until:
            sys.exit("the others did not come in ten minutes")
        time.sleep(0.05)
    return found


def sums(x: Floats, benign: Floats) -> Floats:
    """Counts and sums by class, and sums of squares."""
    out = np.zeros(SHAPE)
    for row, chosen in ((0, benign == 0), (2, benign == 1)):
        part = x[chosen]
        out[row, 0], out[row, 1:], out[row + 1, 1:] = len(part), part.sum(axis=0), (part**2).sum(axis=0)
    return out / ROWS


def statistics(total: Floats) -> tuple[Floats, Floats, Floats]:
    """Means and deviations of all rows, and Welch's t between the classes."""
    total = total * ROWS
    counts, first, second = total[[0, 2], 0], total[[0, 2], 1:], total[[1, 3], 1:]
    n = counts.sum()
    mean = first.sum(axis=0) / n
    deviation = np.sqrt(second.sum(axis=0) / n - mean**2)
    means = first / counts[:, None]
    variances = (second - counts[:, None] * means**2) / (counts[:, None] - 1)
    t = (means[0] - means[1]) / np.sqrt((variances / counts[:, None]).sum(axis=0))
    return mean, deviation, t


def slopes(x: Floats, benign: Floats, weights: Floats) -> Floats:
    """Gradient and second derivatives of the likelihood of rows."""
    x = np.column_stack([np.ones(len(x)), np.clip(x, -LARGEST, LARGEST)])
    chance = 1 / (1 + np.exp(-x @ weights))
    out = np.zeros(SHAPE)
    out[0] = x.T @ (benign - chance) / LARGEST
    out[1:] = (x.T * (chance * (1 - chance))) @ x / LARGEST**2
    return out / ROWS


def stepped(weights: Floats, total: Floats) -> Floats:
    """Newton's step, with a ridge on all weights but the first."""
    total = total * ROWS
    ridge = np.diag([0.0] + [1.0] * FEATURES)
    step: Floats = np.linalg.solve(total[1:] * LARGEST**2 + ridge, total[0] * LARGEST - ridge @ weights)
    return weights + step


def meeting(url: str, token: str) -> sd.RemoteRoom:
    """Where the hospitals meet."""
    return sd.remote(url, token=token).room("study")


def hospital(name: str, url: str, home: Path) -> None:
    """What a hospital does; started anew it goes on where it was."""
    rows = np.load(home / "rows.npy")
    bounds, x, benign = rows[0, :-1], rows[1:, :-1], rows[1:, -1]
    room = meeting(url, (home / "token").read_text())
    party = sd.Party(room, name, home / "party")
    party.round(wait=600)
    encrypt = party.public().encrypt
    # One of them asks the server to compute; it could be anybody.
    computes = sd.combine(room) if name == NAMES[0] else None
    if computes is not None:
        print(f"server      {computes}", flush=True)

    def together(step: int, mine: Callable[[], Floats]) -> Floats:
        """A sum over the three, of which two decrypt for all."""
        said = f"data_{step}_{name}"
        if party.value(said) is None:
            party.put(said, encrypt(mine(), name))
        if isinstance(computes, sd.RemoteServer) and party.value(f"sum_{step}") is None:
            all_three = [wait(partial(party.value, f"data_{step}_{other}")) for other in NAMES]
            party.put(f"sum_{step}", computes.run(*all_three))
        total = wait(partial(party.value, f"sum_{step}"))
        two = PAIRS[step % 3]
        if name in two:
            party.share(total, two, NAMES)
        wait(lambda: party.request(total) is not None and not party.unanswered(total))
        return party.combine(total)

    mean, deviation, t = statistics(together(0, lambda: sums(x / bounds, benign)))
    standard = (x / bounds - mean) / deviation
    weights = np.zeros(FEATURES + 1)
    for step in range(1, STEPS + 1):
        weights = stepped(weights, together(step, partial(slopes, standard, benign, weights)))
    np.save(home / "result.npy", np.array([np.append(0.0, t), weights]))


def start(*words: object) -> subprocess.Popen[bytes]:
    """Another process of this demonstration."""
    return subprocess.Popen([sys.executable, __file__, *map(str, words)])


def refusals(room: sd.RemoteRoom, folder: Path) -> None:
    """What nobody gets: an answer for others, and a result that is not for him."""
    guest = sd.Party(room, "guest", folder / "guest")
    north = sd.Party(room, "north", folder / "north" / "party")
    total = wait(partial(guest.value, "sum_0"))
    for what in (lambda: north.share(total, ["north", "south"], ["guest"]), lambda: guest.combine(total)):
        try:
            what()
        except sd.SudareError as refusal:
            print(f"refused     {refusal}")
        else:
            sys.exit("what was to be refused was done")


def main() -> None:
    """The whole demonstration."""
    x, benign = measurements()
    plan = sd.plan(
        lambda north, south, west: north + south + west,
        north=sd.spec(SHAPE),
        south=sd.spec(SHAPE),
        west=sd.spec(SHAPE),
        error=WANTED_ERROR,
        parties=3,
        threshold=2,
        release=sd.Release(STEPS + 1),
    )
    print(plan)
    # Bounds of the features, which all agreed on.
    bounds = np.ceil(x.max(axis=0))
    with tempfile.TemporaryDirectory() as temporary, server(temporary, *NAMES) as (url, tokens):
        folder, room = Path(temporary), meeting(url, tokens[0])
        seen = sd.Parties.begin(room, plan, NAMES)
        for at, name in enumerate(NAMES):
            (folder / name).mkdir()
            (folder / name / "token").write_text(tokens[at])
            rows = np.column_stack([x, benign])[at::3]
            np.save(folder / name / "rows.npy", np.vstack([np.append(bounds, 0.0), rows]))
        started = time.perf_counter()
        processes = {name: start("hospital", name, url, folder / name) for name in NAMES}

        def again(when: str) -> None:
            processes["west"].kill()
            processes["west"].wait()
            print(f"killed      west, {when}; it starts again from its folder")
            processes["west"] = start("hospital", "west", url, folder / "west")

        wait(lambda: "west" not in seen.missing.get("public", []))
        again("while keys are made")
        wait(partial(seen.value, "sum_0"))
        again("while it is asked to decrypt")
        for name, process in processes.items():
            if process.wait() != 0:
                sys.exit(f"{name} failed")
        print(
            f"together    {time.perf_counter() - started:.1f} s, keys, {STEPS + 1} sums and their decryptions"
        )
        found = [np.load(folder / name / "result.npy") for name in NAMES]
        refusals(room, folder)

    mean, deviation, t = statistics(sums(x / bounds, benign))
    weights = np.zeros(FEATURES + 1)
    for _ in range(STEPS):
        weights = stepped(weights, slopes((x / bounds - mean) / deviation, benign, weights))
    same = all(np.array_equal(found[0], other) for other in found)
    differences = np.abs(found[0][0, 1:] - t).max(), np.abs(found[0][1] - weights).max()
    print(f"Welch's t   up to {np.abs(t).max():.2f}; {differences[0]:.1e} from NumPy on all rows")
    print(
        f"regression  weights up to {np.abs(weights).max():.2f}; {differences[1]:.1e} from NumPy on all rows"
    )
    right = np.mean(
        (((x / bounds - mean) / deviation) @ found[0][1, 1:] + found[0][1, 0] > 0) == (benign > 0)
    )
    print(f"diagnoses   {right:.1%} of all rows right")
    if not same or max(differences) > 1e-3:
        sys.exit("the result is not that in the clear")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["hospital", name, url, home]:
            hospital(name, url, Path(home))
        case _:
            main()
