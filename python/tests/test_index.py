"""Encrypted search among vectors, from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sudare as sd

D, ROWS = 64, 900
GAP = (0.7, 0.9)


def vectors(rng: np.random.Generator, rows: int) -> np.ndarray:
    return rng.standard_normal((rows, D)).astype(np.float32)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """An index without security, 512 rows a segment, and 900 rows of which every hundredth is row 0."""
    rng = np.random.default_rng(5)
    faces = vectors(rng, ROWS)
    faces[::100] = faces[0]
    payload = rng.integers(-(2**15), 2**15, (ROWS, 2)).astype("i2")
    index = sd.Index(d=D, above=0.8, gap=GAP, rows=2000, payload=("i2", 2), insecure=9)
    client = sd.IndexClient(index)
    path = tmp_path_factory.mktemp("index") / "faces.sudare"
    assert client.store(path, faces, payload=payload) == ROWS
    server = client.server()
    return {
        "index": index,
        "client": client,
        "server": server,
        "faces": faces,
        "payload": payload,
        "path": path,
        "table": sd.open(path, server=server, memory="1 GB"),
    }


def scores(faces: np.ndarray, question: np.ndarray) -> np.ndarray:
    return np.asarray(faces @ question / np.linalg.norm(faces, axis=1) / np.linalg.norm(question))


def test_answers_are_numpys(world: dict[str, Any]) -> None:
    client, table, faces = world["client"], world["table"], world["faces"]
    assert isinstance(client, sd.IndexClient)
    assert len(table) == ROWS
    question = client.query(3.0 * faces[0])
    assert client.decrypt(table.count(question)) == 9
    assert client.decrypt(table.count(question, above=0.75)) == 9
    assert client.decrypt(table.histogram(question, [0.75, (0.6, 0.95)])).tolist() == [9, 9]
    hits = client.decrypt(table.fetch(question))
    assert hits["index"].tolist() == list(range(0, ROWS, 100))
    assert np.array_equal(hits["payload"], world["payload"][::100])
    assert hits["payload"].dtype == np.int16
    with pytest.raises(sd.TooManyError, match="9 rows match"):
        client.decrypt(table.fetch(question), limit=8)
    found = client.decrypt(table.scores(question))
    assert np.abs(found - scores(faces, faces[0])).max() < 1e-4
    best = client.top(table, client.query(faces[5]), 3)
    assert best["index"][0] == 5
    assert np.all(np.diff(best["score"]) <= 0)


def test_compact_tables_answer_alike(world: dict[str, Any], tmp_path: Path) -> None:
    faces, payload = world["faces"], world["payload"]
    index = sd.Index(d=D, above=0.8, gap=GAP, rows=2000, payload=("i2", 2), mode="compact", insecure=11)
    assert (index.mode, world["index"].mode) == ("compact", "leveled")
    assert index.bytes["rows"] < sd.Index(d=D, above=0.8, gap=GAP, rows=2000, insecure=11).bytes["rows"] / 5
    client = sd.IndexClient(index)
    server = sd.IndexServer.from_bytes(index, client.server().to_bytes(), threads=1)
    assert client.store(tmp_path / "t", faces, payload=payload) == ROWS
    table = sd.open(tmp_path / "t", server=server, memory="4 GB")
    question = client.query(faces[[0, 1]])
    assert client.decrypt(table.count(question)).tolist() == [9, 1]
    assert client.decrypt(table.histogram(question, [0.75, 0.8])).tolist() == [[9, 9], [1, 1]]
    hits = client.decrypt(table.fetch(question))[0]
    assert hits["index"].tolist() == list(range(0, ROWS, 100))
    assert np.array_equal(hits["payload"], payload[::100])
    with pytest.raises(sd.PlanError, match="leveled"):
        table.scores(question)
    with pytest.raises(sd.SudareError, match="compact"):
        sd.Index(d=D, above=0.8, rows=2000, mode="small")


def test_batches_and_bytes(world: dict[str, Any]) -> None:
    client, table, faces, index = (world[k] for k in ("client", "table", "faces", "index"))
    batch = client.query(faces[[0, 1]])
    counts = client.decrypt(table.count(sd.IndexQuery.from_bytes(index, batch.to_bytes())))
    assert counts.tolist() == [9, 1]
    assert client.decrypt(table.histogram(batch, [0.75, 0.8])).shape == (2, 2)
    assert [len(hits) for hits in client.decrypt(table.fetch(batch))] == [9, 1]
    assert client.decrypt(table.scores(batch)).shape == (2, ROWS)
    answer = table.count(client.query(faces[1]))
    again = sd.IndexAnswer.from_bytes(index, answer.to_bytes())
    assert client.decrypt(again) == 1
    server = sd.IndexServer.from_bytes(index, world["server"].to_bytes(), threads=1)
    other = server.open(world["path"], memory="1 GB")
    assert client.decrypt(other.count(client.query(faces[1]))) == 1
    kept = sd.IndexClient.from_secret_bytes(index, client.secret_bytes())
    assert kept.decrypt(again) == 1
    with pytest.raises(sd.FormatError):
        sd.IndexQuery.from_bytes(index, batch.to_bytes()[:-1])


def test_chunks_frames_and_appends(world: dict[str, Any], tmp_path: Path) -> None:
    client, faces, payload = world["client"], world["faces"], world["payload"]
    path = tmp_path / "t"
    chunks = (faces[i : i + 200] for i in range(0, 600, 200))
    assert client.store(path, chunks, payload=(payload[i : i + 200] for i in range(0, 600, 200))) == 600
    assert client.append(path, faces[600:610].tolist(), payload=payload[600:610]) == 610
    table = sd.open(path, server=world["server"], memory="1 GB")
    hits = client.decrypt(table.fetch(client.query(faces[605])))
    assert hits["index"].tolist() == [605]
    assert np.array_equal(hits["payload"], payload[[605]])
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(faces[:4].astype(float))
    assert client.append(path, frame, payload=payload[:4]) == 614
    assert client.discard(path) == 0


def test_refusals(world: dict[str, Any], tmp_path: Path) -> None:
    client, table, faces, payload = (world[k] for k in ("client", "table", "faces", "payload"))
    bad = faces[:2].copy()
    bad[1, 3] = np.nan
    with pytest.raises(sd.InputError, match="finite"):
        client.query(bad)
    with pytest.raises(sd.InputError, match="zero"):
        client.query(np.zeros(D))
    with pytest.raises(sd.ShapeError, match="64 coordinates"):
        client.query(faces[:, :5])
    with pytest.raises(sd.ShapeError, match="payloads"):
        client.store(tmp_path / "a", faces, payload=payload[:, :1])
    with pytest.raises(sd.InputError, match="int16"):
        client.store(tmp_path / "b", faces[:1], payload=[[1, 2**15]])
    with pytest.raises((OSError, sd.SudareError), match="already"):
        client.store(world["path"], faces, payload=payload)
    with pytest.raises(sd.PlanError, match="memory"):
        sd.open(world["path"], server=world["server"], memory="1 MB")
    with pytest.raises(sd.PlanError, match="widen the gap"):
        sd.Index(d=D, above=0.8, gap=(0.79, 0.81), rows=10**6)
    with pytest.raises(sd.InputError, match="payload"):
        sd.Index(d=D, above=0.8, rows=10, payload=("U4", 2))
    stranger: Any = sd.Client(world["index"])
    with pytest.raises(sd.KeyMismatchError):
        table.count(stranger.query(faces[0]))
    with pytest.raises(sd.KeyMismatchError):
        sd.open(world["path"], server=stranger.server())


def test_plans(world: dict[str, Any], tmp_path: Path) -> None:
    index = sd.Index(d=128, above=0.8, gap=(0.66, 0.82), rows=50_000, payload=("u2", 7, 12))
    assert "128 bits of security" in index.explain()
    assert index.bytes["count"] < 350_000
    assert index.log2_failure < -60
    assert f"about {index.seconds():.2f} s" in index.explain()
    low, high = sd.Index(d=D, above=0.7, rows=10_000).gap
    assert low < 0.7 < high
    assert repr(world["table"]).startswith("<sudare table of 900 rows")


def test_rows_in_the_clear_are_scored() -> None:
    rng = np.random.default_rng(9)
    faces = vectors(rng, 2100)
    index = sd.PlainIndex(d=D)
    client = sd.PlainClient(index)
    table = sd.PlainTable(index, faces)
    assert (len(table), index.d) == (2100, D)
    batch = rng.standard_normal((3, D))
    question = client.query(batch)
    found = client.decrypt(table.scores(question))
    exact = np.stack([scores(faces, each) for each in batch])
    assert found.shape == exact.shape
    assert np.abs(found - exact).max() < 8 * index.deviation
    top = client.top(table, client.query(5 * faces[2050]), 2)
    assert top["index"][0] == 2050
    assert top["score"][0] == pytest.approx(1, abs=1e-3)
    again = sd.PlainClient.from_secret_bytes(index, client.secret_bytes())
    assert np.array_equal(again.decrypt(table.scores(question)), found)
    with pytest.raises(sd.KeyMismatchError):
        sd.PlainClient(index).decrypt(table.scores(question))
    with pytest.raises(sd.KeyMismatchError):
        sd.PlainTable(sd.PlainIndex(d=3), np.eye(3)).scores(question)
    for damaged in (b"", b"a question", question[:-1], question[:5000] + b"x" + question[5001:]):
        with pytest.raises(sd.FormatError):
            table.scores(damaged)
    with pytest.raises(sd.InputError, match="zero"):
        client.query(np.zeros(D))
    with pytest.raises(sd.ShapeError):
        client.query(np.ones(D + 1))
    with pytest.raises(sd.InputError):
        sd.PlainTable(index, np.full((2, D), np.nan))
    with pytest.raises(sd.PlanError, match="4096"):
        sd.PlainIndex(d=5000)
