"""Several owners of integers, encrypted texts, and tables that come back as tables."""

from __future__ import annotations

import io
import pickle
from typing import Any

import numpy as np
import pytest
import sudare as sd

QUICK = "insecure_test"


@pytest.fixture(scope="module")
def ctx() -> sd.BitsContext:
    return sd.bits(parameters=QUICK, threads=1)


@pytest.mark.parametrize("parameters", [QUICK, "insecure_test_gates"])
def test_two_owners_send_to_one_result(parameters: str) -> None:
    client = sd.BitsClient(parameters=parameters, threads=1)
    server = client.server()
    client.public().save(file := io.BytesIO())
    here, there = sd.load(file.getvalue()), pickle.loads(pickle.dumps(client.public()))
    assert isinstance(here, sd.BitsPublicClient)
    assert here.key_id == there.key_id == client.key_id
    bits = parameters != QUICK
    a: Any = np.array([True, False, True]) if bits else np.array([7, -3, 120], np.int8)
    b: Any = np.array([True, True, False]) if bits else np.array([1, 2, -3], np.int8)
    x, y = server.load(here.encrypt(a).to_bytes()), server.bind(there.encrypt(b))
    for found, wanted in ((x ^ y, a ^ b), (x & client.encrypt(b), a & b), (x == y, a == b)):
        np.testing.assert_array_equal(client.decrypt(found), wanted)
    if not bits:
        np.testing.assert_array_equal(client.decrypt(x * y), a * b)
    np.testing.assert_array_equal(
        client.decrypt(here.encrypt(np.zeros((2, 0), bool))), np.zeros((2, 0), bool)
    )
    with pytest.raises(sd.UnsupportedError, match="no server to compute with"):
        here.encrypt(a) & there.encrypt(b)
    with pytest.raises(sd.KeyMismatchError):
        sd.BitsClient(parameters=parameters, threads=1).decrypt(x)
    with pytest.raises(sd.FormatError):
        sd.BitsPublicClient(here.params_bytes(), here.to_bytes()[:-1])
    with pytest.raises(sd.UnsupportedError, match="not float64"):
        here.encrypt([0.5])


def test_a_public_key_at_128_bits() -> None:
    client = sd.BitsClient(threads=2)
    values = np.array([3, 250], np.uint8)
    np.testing.assert_array_equal(client.decrypt(client.public().encrypt(values)), values)


def test_texts(ctx: sd.BitsContext) -> None:
    with pytest.raises(sd.UnsupportedError, match=r"encrypt_text\(x, length=8\)"):
        ctx.encrypt(np.array(["a-17"]))
    ids = np.array(["a-17", "b-2", "ä-0123456", ""])
    x, y = ctx.encrypt_text(ids, 12), ctx.encrypt_text(ids[::-1], 12)
    assert (x.shape, len(x), x[1:].shape, x[0].shape, x[:, None].shape) == ((4,), 4, (3,), (), (4, 1))
    np.testing.assert_array_equal(ctx.decrypt(x), ids)
    np.testing.assert_array_equal(ctx.decrypt(x == y), ids == ids[::-1])
    np.testing.assert_array_equal(ctx.decrypt(x != "b-2"), ids != "b-2")
    np.testing.assert_array_equal(
        ctx.decrypt(x[:2, None] == y[None, 2:]), ids[:2, None] == ids[::-1][None, 2:]
    )
    np.testing.assert_array_equal(ctx.decrypt(x.isin(["", "b-2"])), np.isin(ids, ["", "b-2"]))
    # The numbers travel.
    again = sd.EncryptedText(ctx.load(x.words.to_bytes()), 12)
    assert ctx.decrypt(again == x).all()
    for bad, error, told in (
        (["short", "much longer than twelve"], sd.InputError, r"the element at \(1,\) has 23 bytes"),
        (["a", None], sd.UnsupportedError, r"the element at \(1,\) has no text"),
        ([1], sd.UnsupportedError, "no text but int"),
    ):
        with pytest.raises(error, match=told):
            ctx.encrypt_text(bad, 12)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"name": ["Ada", "Emmy"], "town": ["London", None]}, index=[5, 6])
    with pytest.raises(sd.UnsupportedError, match="row 6 of column 'town' has no text"):
        ctx.encrypt_text(frame, 8)
    names = frame.fillna("Erlangen")
    np.testing.assert_array_equal(ctx.decrypt(ctx.encrypt_text(names, 8)), names.to_numpy(str))
    with pytest.raises(sd.InputError, match="row 6 has 4 bytes"):
        ctx.encrypt_text(frame["name"], 3)
    with pytest.raises(sd.ShapeError, match="one length"):
        x == ctx.encrypt_text(ids[:1], 8)  # noqa: B015
    with pytest.raises(sd.UnsupportedError, match="compared with texts"):
        x == x.words  # noqa: B015


def test_joins_by_encrypted_texts(ctx: sd.BitsContext) -> None:
    ours, theirs = ["p1", "p9", "p3"], ["p3", "p4", "p1"]
    paid = np.array([30, 40, -10], np.int16)
    x, keys = ctx.encrypt_text(ours, 8), ctx.encrypt_text(theirs, 8)
    wanted = [-10, 0, 30]
    for values in (paid, ctx.encrypt(paid)):
        found = ctx.decrypt(x.lookup(keys, values))
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == np.int16
    np.testing.assert_array_equal(ctx.decrypt(x.lookup(theirs, paid, default=-1)), [-10, -1, 30])
    with pytest.raises(sd.ShapeError, match="as many values"):
        x.lookup(keys, paid[:2])


def tables() -> list[Any]:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    data = {"h": [0.5, -1.0, 0.25], "w": [1.0, 0.0, 0.75]}
    return [pd.DataFrame(data, index=["x", "y", "z"]), pl.DataFrame(data)]


@pytest.mark.parametrize("at", [0, 1])
def test_tables_come_back_as_tables(at: int, ctx: sd.BitsContext) -> None:
    frame = tables()[at]
    real = sd.context(depth=1, tile=4, security="insecure", threads=1)
    x = real.encrypt(frame, max_abs=1)
    twice = real.decrypt(x * 2, like=frame)
    assert type(twice) is type(frame)
    assert list(twice.columns) == ["h", "w"]
    np.testing.assert_allclose(np.asarray(twice), 2 * frame.to_numpy(), atol=1e-6)
    means = real.decrypt(x.mean(axis=0), like=frame)
    assert list(means.columns) == ["h", "w"]
    column = real.decrypt(x.sum(axis=1), like=frame)
    np.testing.assert_allclose(np.asarray(column), frame.to_numpy().sum(axis=1), atol=1e-6)
    if at == 0:
        assert list(twice.index) == list(column.index) == ["x", "y", "z"]
    with pytest.raises(sd.ShapeError, match=r"neither the 3 rows nor the 2 columns"):
        real.decrypt(x @ np.ones((2, 3)), like=frame)
    with pytest.raises(sd.UnsupportedError, match="data frame"):
        real.decrypt(x, like=np.eye(2))
    # In a plan, and of integers.
    plan = sd.plan(lambda T: T * 2, T=frame, error=1e-3, security="insecure")
    client = plan.client(threads=1)
    client.server()
    found = client.decrypt(client.encrypt(frame) * 2, like=frame)
    np.testing.assert_allclose(np.asarray(found), 2 * frame.to_numpy(), atol=1e-3)
    whole = frame[["h", "w"]] * 4
    whole = whole.astype(int) if at == 0 else whole.cast(pytest.importorskip("polars").Int64)
    assert ctx.decrypt(ctx.encrypt(whole), like=whole).equals(whole)


@pytest.mark.parametrize("at", [0, 1])
def test_elements_of_tables_are_named(at: int) -> None:
    frame = tables()[at] * 2
    row = "x" if at == 0 else 0
    with pytest.raises(sd.InputError, match=f"row {row} of column 'w' is over max_abs=1.5"):
        sd.context(depth=1, tile=4, security="insecure", threads=1).encrypt(frame, max_abs=1.5)
    plan = sd.plan(lambda T: T * 2, T=sd.spec((3, 2), max_abs=1.5), error=1e-3, security="insecure")
    with pytest.raises(sd.InputError, match=f"row {row} of column 'w' is over the planned bound"):
        plan.client(threads=1).encrypt(frame)
