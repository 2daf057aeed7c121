"""Encrypted search among vectors, from Python."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
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


FRESH = """
import sys
from pathlib import Path
import numpy as np
import sudare as sd
for folder in map(Path, sys.argv[1:]):
    index = sd.load(folder / "plan.json")
    server = sd.load(folder / "eval.keys", index, threads=1)
    table = sd.open(folder / "table", server=server, memory="1 GB")
    question = sd.load(folder / "question", server)
    table.count(question).save(folder / "count")
    table.fetch(question).save(folder / "fetch")
    client = sd.load(folder / "secret.key", index, threads=1)
    assert client.decrypt(sd.load(folder / "count", client)) == 3
    np.save(folder / "hits.npy", client.decrypt(sd.load(folder / "fetch", client)))
"""
#: Payloads of every type, and in a wider type than their bits take.
TYPES: list[tuple[Any, ...]] = [
    *((name, 2) for name in ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8")),
    ("u4", 2, 12),
]


def extremes(kind: tuple[Any, ...], rows: int) -> np.ndarray:
    """Payloads of rows: the largest and least numbers of a type, and what is no number."""
    dtype = np.dtype(kind[0])
    if dtype.kind == "f":
        info = np.finfo(dtype)
        some = [info.max, info.min, info.tiny, info.smallest_subnormal, -0.0, np.inf, -np.inf, np.nan]
    else:
        most = np.iinfo(dtype).max if len(kind) == 2 else 2 ** kind[2] - 1
        some = [np.iinfo(dtype).min, most, 0, 1, most - 1]
    return np.resize(np.array(some, dtype), (rows, kind[1]))


def saved(folder: Path, faces: np.ndarray, kind: tuple[Any, ...], **more: Any) -> np.ndarray:
    """The files of a search of which three rows match the question; their payloads."""
    folder.mkdir()
    index = sd.Index(d=D, above=0.8, gap=GAP, rows=2000, payload=kind, **more)
    client = sd.IndexClient(index, threads=1)
    payload = extremes(kind, 30)
    client.store(folder / "table", faces[:30], payload=payload)
    index.save(folder / "plan.json")
    client.save(folder / "secret.key")
    client.server().save(folder / "eval.keys")
    client.query(faces[0]).save(folder / "question")
    return payload[[0, 10, 20]]


def test_files_are_loaded_by_another_process(tmp_path: Path) -> None:
    faces = vectors(np.random.default_rng(8), 30)
    faces[::10] = faces[0]
    wanted = {
        tmp_path / f"{at}": (kind, saved(tmp_path / f"{at}", faces, kind, insecure=9))
        for at, kind in enumerate(TYPES)
    }
    compact: tuple[Any, ...] = ("f4", 2)
    folder = tmp_path / "compact"
    wanted[folder] = (compact, saved(folder, faces, compact, mode="compact", insecure=11))
    subprocess.run([sys.executable, "-c", FRESH, *map(str, wanted)], check=True)
    for folder, (kind, payload) in wanted.items():
        hits = np.load(folder / "hits.npy")
        assert hits["index"].tolist() == [0, 10, 20]
        assert hits["payload"].dtype == np.dtype(kind[0])
        # To the bit: signs of zeros, and what is no number.
        assert hits["payload"].tobytes() == payload.tobytes()
        secret = (folder / "secret.key").read_bytes()
        assert stat.S_IMODE(os.stat(folder / "secret.key").st_mode) == 0o600
        for name in ("plan.json", "eval.keys", "question", "count", "fetch"):
            assert secret[-160:-80] not in (folder / name).read_bytes()


def test_a_plan_without_a_type_reads_the_same_table(world: dict[str, Any]) -> None:
    """Plans had none, of payloads that Python stored with one."""
    text = world["index"].to_json()
    old = sd.load(re.sub(r',\s*"dtype": "i2"', "", text).encode())
    assert old.to_json() != text
    assert sd.load(text.encode()).to_json() == text
    server = sd.IndexServer.from_bytes(old, world["server"].to_bytes(), threads=1)
    table = sd.open(world["path"], server=server, memory="1 GB")
    client = sd.IndexClient.from_secret_bytes(old, world["client"].secret_bytes())
    answer = table.fetch(client.query(world["faces"][0]))
    assert client.decrypt(answer)["payload"].tolist() == world["payload"][::100].view("u2").tolist()
    typed = sd.load(answer.to_bytes(), world["client"])
    assert np.array_equal(world["client"].decrypt(typed)["payload"], world["payload"][::100])


def test_files_of_no_search_and_of_others_are_refused(world: dict[str, Any], tmp_path: Path) -> None:
    index, client, server, table = (world[k] for k in ("index", "client", "server", "table"))
    text = index.to_json()
    question = client.query(world["faces"][0])
    answer = table.count(question)
    for bad in (
        text[:-20],
        text.replace('"d": 64', '"d": "64"'),
        text.replace('"d": 64', '"d": 64, "e": 1'),
        text.replace('"sudare_index": 1', '"sudare_index": 9'),
        text.replace('"i2"', '"i3"'),
        text.replace('"i2"', '["i2"]'),
    ):
        assert bad != text
        with pytest.raises(sd.FormatError):
            sd.load(bad.encode())
    for bad in (text.replace('"i2"', '"f8"'), text.replace('"d": 64', '"d": 0'), text.replace("0.9", "0.71")):
        assert bad != text
        with pytest.raises(sd.PlanError):
            sd.load(bad.encode())
    messages = [
        (client.secret_bytes(), index),
        (server.to_bytes(), index),
        (question.to_bytes(), server),
        (answer.to_bytes(), client),
    ]
    for data, home in messages:
        middle = len(data) // 2
        for bad_bytes in (
            data[:-1],
            data + b"x",
            data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :],
        ):
            with pytest.raises(sd.FormatError):
                sd.load(bad_bytes, home)
    for data, _ in messages:
        with pytest.raises(sd.PlanError):
            sd.load(data)
    for message in (question, answer):
        with pytest.raises(sd.PlanError, match="server reads questions"):
            sd.load(message.to_bytes(), index)
    with pytest.raises(sd.KeyMismatchError):
        sd.load(question.to_bytes(), client)
    with pytest.raises(sd.KeyMismatchError):
        sd.load(answer.to_bytes(), server)
    # Another search: other coordinates, and another ring.
    other = sd.IndexClient(sd.Index(d=D + 1, above=0.8, gap=GAP, rows=2000, payload=("i2", 2), insecure=9))
    for data, home in ((question.to_bytes(), other.server()), (answer.to_bytes(), other)):
        with pytest.raises(sd.KeyMismatchError):
            sd.load(data, home)
    for further in (
        sd.Index(d=D, above=0.8, gap=GAP, rows=2000, insecure=10),
        sd.plan(lambda A: A.sum(axis=0), A=sd.spec((4, 2)), error=1e-4),
    ):
        for data, _ in messages[:2]:
            with pytest.raises(sd.KeyMismatchError):
                sd.load(data, further)
    compact = sd.Index(d=D, above=0.8, gap=GAP, rows=2000, mode="compact", insecure=11)
    with pytest.raises(sd.KeyMismatchError):
        sd.load(client.secret_bytes(), compact)
    with pytest.raises(sd.FormatError, match="bootstrapping keys"):
        sd.load(server.to_bytes(), compact)
    # Another owner.
    stranger = sd.IndexClient(index)
    with pytest.raises(sd.KeyMismatchError):
        stranger.decrypt(sd.load(answer.to_bytes(), stranger))
    client.save(tmp_path / "key")
    for thing in (index, server, question, answer):
        with pytest.raises(sd.InputError, match="holds a secret key"):
            thing.save(tmp_path / "key")
    with pytest.raises(sd.InputError, match="name another file"):
        stranger.save(tmp_path / "key")
    other_order = np.dtype("i2").newbyteorder("S")
    with pytest.raises(sd.InputError, match="byte order"):
        sd.Index(d=D, above=0.8, rows=10, payload=(other_order, 2))


FRESH_IN_THE_CLEAR = """
import sys
from pathlib import Path
import numpy as np
import sudare as sd
folder = Path(sys.argv[1])
index = sd.load(folder / "plan.json")
table = sd.PlainTable(index, np.load(folder / "rows.npy"))
(folder / "answer").write_bytes(table.scores(folder / "question"))
client = sd.load(folder / "secret.key", index)
np.save(folder / "scores.npy", client.decrypt(folder / "answer"))
"""


def test_files_of_rows_in_the_clear(tmp_path: Path) -> None:
    faces = vectors(np.random.default_rng(10), 300)
    index = sd.PlainIndex(d=D)
    client = sd.PlainClient(index)
    index.save(tmp_path / "plan.json")
    client.save(tmp_path / "secret.key")
    np.save(tmp_path / "rows.npy", faces)
    question = client.query(faces[7])
    (tmp_path / "question").write_bytes(question)
    subprocess.run([sys.executable, "-c", FRESH_IN_THE_CLEAR, str(tmp_path)], check=True)
    found = np.load(tmp_path / "scores.npy")
    assert np.array_equal(found, client.decrypt(sd.PlainTable(index, faces).scores(question)))
    assert np.abs(found - scores(faces, faces[7])).max() < 8 * index.deviation
    text = index.to_json()
    for old, new in (("1", "2"), ('"d"', '"e"'), ("64", '"64"'), ("64", "64.0"), ("64", "true"), ("}", "}x")):
        with pytest.raises(sd.FormatError):
            sd.load(text.replace(old, new).encode())
    with pytest.raises(sd.PlanError):
        sd.load(text.replace("64", "5000").encode())
    with pytest.raises(sd.UnsupportedError, match=r"table\.scores"):
        sd.load(question, index)
    with pytest.raises(sd.KeyMismatchError):
        sd.load(tmp_path / "secret.key", sd.Index(d=D, above=0.8, gap=GAP, rows=2000, insecure=9))
