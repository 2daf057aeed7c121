"""Keys that several parties hold together."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic

import numpy as np
import pytest
import sudare as sd
from conftest import serving
from test_documents import GUIDE, blocks, commands

NAMES = ["north", "south", "west"]


@pytest.fixture(scope="module")
def plan() -> sd.Plan:
    return sd.plan(
        lambda north, south, west: north + south + west,
        north=sd.spec((4, 3)),
        south=sd.spec((4, 3)),
        west=sd.spec((4, 3)),
        error=1e-6,
        parties=3,
        threshold=2,
        release=sd.Release(5),
    )


def members(folder: Path, plan: sd.Plan) -> list[sd.Party]:
    sd.Parties.begin(folder / "room", plan, NAMES)
    found = [sd.Party(folder / "room", name, folder / name, threads=1) for name in NAMES]
    for _ in range(3):
        for party in found:
            party.round()
    assert found[0].missing == {}
    return found


def test_parties_that_wait_finish_together(plan: sd.Plan, tmp_path: Path) -> None:
    sd.Parties.begin(tmp_path / "room", plan, NAMES)
    found = [sd.Party(tmp_path / "room", name, tmp_path / name, threads=1) for name in NAMES]
    started = monotonic()
    assert found[0].round(wait=0.3)["public"] == ["south", "west"]
    assert monotonic() - started >= 0.3
    with ThreadPoolExecutor() as threads:
        assert list(threads.map(lambda party: party.round(wait=120), found)) == [{}] * 3
    # Each has taken over what the others sent.
    server, public = sd.combine(tmp_path / "room", threads=1), found[0].public()
    a, b, c = (server.bind(public.encrypt(np.full((4, 3), 0.5), name)) for name in NAMES)
    total = a + b + c
    for party in found[1:]:
        party.share(total, ["south", "west"], ["west"])
    assert np.abs(found[2].combine(total) - 1.5).max() <= plan.error


def test_two_of_three_decrypt_for_those_who_are_named(plan: sd.Plan, tmp_path: Path) -> None:
    north, south, west = members(tmp_path, plan)
    assert plan.error <= 1e-6
    assert "3 parties" in str(plan)
    x = np.random.default_rng(1).uniform(-1, 1, (3, 4, 3))
    room = sd.Parties(tmp_path / "room")
    server = sd.combine(tmp_path / "room", threads=1)
    a, b, c = (server.bind(room.public().encrypt(x[i], name)) for i, name in enumerate(NAMES))
    total = a + b + c
    with pytest.raises(sd.PlanError, match="nobody has asked"):
        west.share(total)
    with pytest.raises(sd.KeyMismatchError, match="south is not among the parties"):
        south.share(total, ["north", "west"], ["south"])
    assert room.request(total) is None
    assert north.share(total, ["north", "west"], ["south", "north"]) == (
        ["north", "west"],
        ["south", "north"],
    )
    assert room.unanswered(total) == ["west"]
    with pytest.raises(sd.ShapeError, match="messages of west"):
        south.combine(total)
    with pytest.raises(sd.PlanError, match="answered once"):
        south.share(total, ["north", "south"], ["south"])
    with pytest.raises(sd.UnsupportedError, match="north, west were asked to decrypt it for south, north"):
        west.share(total)
    assert room.unanswered(total) == ["west"]
    west.share(total, ["west", "north"], ["north", "south"])
    assert west.share(total, agree=True) == (["north", "west"], ["south", "north"])
    for party in (north, south):
        assert np.abs(party.combine(total) - x.sum(axis=0)).max() <= plan.error
    with pytest.raises(sd.PlanError, match="west"):
        west.combine(total)
    assert north.releases == 1
    assert (north.name, north.names) == ("north", NAMES)
    assert north.fingerprint == room.fingerprint_of("north")
    with pytest.raises(sd.UnsupportedError, match="both"):
        west.share(total, ["north", "west"])
    with pytest.raises(sd.UnsupportedError, match="not both"):
        west.share(total, ["north", "west"], ["south"], agree=True)
    with pytest.raises(sd.UnsupportedError, match="encrypted matrix"):
        west.share(np.eye(3))  # type: ignore[arg-type]


def test_a_party_goes_on_from_its_folder(plan: sd.Plan, tmp_path: Path) -> None:
    room = tmp_path / "room"
    sd.Parties.begin(room, plan, NAMES)
    sd.Party(room, "north", tmp_path / "north").round()
    # The first object is gone, and so is its lock.
    assert sd.Party(room, "north", tmp_path / "north").round()["public"] == ["south", "west"]
    with pytest.raises(sd.ShapeError, match="messages of south, west"):
        sd.Parties(room).public()
    with pytest.raises(sd.SudareError, match="key-north"):
        sd.Party(room, "north", tmp_path / "elsewhere")
    assert sd.Party(room, "guest", tmp_path / "guest").missing["key"] == ["south", "west"]


def test_integers_are_opened_exactly(tmp_path: Path) -> None:
    spec = sd.spec((2, 3), dtype=int, max_abs=10**6)
    plan = sd.plan(
        lambda north, south, west: north + 2 * south - west,
        north=spec,
        south=spec,
        west=spec,
        parties=3,
        threshold=2,
        release=sd.Release(5),
    )
    assert plan.error == 0.0
    north, south, west = members(tmp_path, plan)
    server = sd.combine(tmp_path / "room", threads=1)
    x = np.random.default_rng(3).integers(-(10**6), 10**6, (3, 2, 3))
    a, b, c = (server.bind(north.public().encrypt(x[i], name)) for i, name in enumerate(NAMES))
    total = a + 2 * b - c
    south.share(total, ["south", "west"], ["north"])
    west.share(total, agree=True)
    found = north.combine(total)
    assert found.dtype == np.int64
    assert (found == x[0] + 2 * x[1] - x[2]).all()
    with pytest.raises(sd.PlanError, match="beside its result"):
        sd.plan(
            lambda A, B: A @ B,
            A=spec,
            B=sd.spec((3, 2), dtype=int, max_abs=9),
            parties=3,
            threshold=2,
            release=sd.Release(5),
        )


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sd.Remote]:
    """A server where parties meet."""
    with serving(tmp_path_factory.mktemp("serve")) as (url, token):
        yield sd.remote(url, token=token)


def test_parties_meet_at_a_server(plan: sd.Plan, served: sd.Remote, tmp_path: Path) -> None:
    room = served.room("study")
    with pytest.raises(sd.FormatError, match="study"):
        sd.Parties(room)
    seen = sd.Parties.begin(room, plan, NAMES)
    with pytest.raises(sd.SudareError, match="already"):
        sd.Parties.begin(room, plan, NAMES)
    # Each call is a party that starts anew.
    for _ in range(3):
        for name in NAMES:
            sd.Party(room, name, tmp_path / name, threads=1).round()
    assert (seen.missing, served.rooms()) == ({}, ["study"])
    north, south, west = (sd.Party(room, name, tmp_path / name, threads=1) for name in NAMES)
    computes = sd.combine(room)
    assert isinstance(computes, sd.RemoteServer)
    x = np.random.default_rng(2).uniform(-1, 1, (3, 4, 3))
    for i, name in enumerate(NAMES):
        assert seen.value(name) is None
        seen.put(name, seen.public().encrypt(x[i], name))
    values = [seen.value(name) for name in NAMES]
    south.put("total", computes.run(*values))
    total = west.value("total")
    assert total is not None
    north.share(total, ["north", "west"], ["south"])
    assert seen.unanswered(total) == ["west"]
    west.share(total, agree=True)
    assert np.abs(south.combine(total) - x.sum(axis=0)).max() <= plan.error
    with pytest.raises(sd.SudareError, match="value-total"):
        south.put("total", values[0] if values[0] is not None else total)
    with pytest.raises(sd.PlanError, match="letters"):
        south.value("../x")
    assert "study" in repr(room)
    room.delete()
    with pytest.raises(sd.RemoteError, match="room"):
        room.delete()
    nobody = sd.remote(served.url, token="sudare_none").room("study")
    with pytest.raises(sd.RemoteError, match="token"):
        sd.Parties(nobody)


def test_what_is_not_shared_is_refused(plan: sd.Plan, tmp_path: Path) -> None:
    with pytest.raises(sd.PlanError, match="hold the key together"):
        sd.Client(plan)
    alone = sd.plan(lambda A: A + 1.0, A=sd.spec((2, 2)), error=1e-4)
    with pytest.raises(sd.PlanError, match="one owner"):
        sd.Parties.begin(tmp_path / "room", alone, NAMES)
    with pytest.raises(sd.PlanError, match="name of its own"):
        sd.Parties.begin(tmp_path / "room", plan, NAMES[:2])
    spec = sd.spec((2, 2))
    with pytest.raises(sd.PlanError, match="threshold=2"):
        sd.plan(lambda A: A + 1.0, A=spec, error=1e-4, parties=3)
    with pytest.raises(sd.PlanError, match="release"):
        sd.plan(lambda A: A + 1.0, A=spec, error=1e-4, parties=3, threshold=2)
    with pytest.raises(sd.PlanError, match="threshold from 2"):
        sd.plan(lambda A: A + 1.0, A=spec, error=1e-4, parties=3, threshold=4, release=sd.Release(2))


def test_the_commands_of_the_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's commands, one after the other, in a folder where its plan was made."""
    page = GUIDE / "4-operating" / "06-several-parties.md"
    monkeypatch.chdir(tmp_path)
    exec(blocks(page, "python")[0][1], {})
    x = {name: np.full((2, 3), value) for name, value in zip(NAMES, (0.25, 0.5, -0.125), strict=True)}
    for name, values in x.items():
        np.savetxt(f"{name}.csv", values, delimiter=",")
    for _, code in blocks(page, "sh"):
        if not code.startswith("make "):
            commands(code, tmp_path)
    assert np.abs(np.loadtxt("sum.csv", delimiter=",") - 0.625).max() < 1e-6
