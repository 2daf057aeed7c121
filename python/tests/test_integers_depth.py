"""Exact integers of any depth, in plans and contexts, against Python's."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import sudare as sd

T = 65537


def loop(x: Any, w: Any) -> Any:
    """A dozen products in a row, half of them with a plain array, and a sum."""
    y = x
    for _ in range(6):
        y = (y * x - w) * w + 3
    return y + x


@pytest.fixture(scope="module")
def ctx() -> sd.IntegerContext:
    """Set X15 over a small ring without security."""
    return sd.context(bootstrap="X15", security="insecure", threads=2)


def test_a_plan_of_powers_and_loops() -> None:
    rng = np.random.default_rng(3)
    numbers: dict[str, Any] = {"max_abs": 900, "dtype": int}
    plan = sd.plan(
        loop,
        x=sd.spec((40, 20), **numbers),
        w=sd.spec((40, 20), plain=True, **numbers),
        bootstrap="X15",
        modulus=T,
        security="insecure",
    )
    shown = str(plan)
    assert plan.method == "arrays"
    assert "exact modulo 65537" in shown
    assert "after operation" in shown
    assert plan.summary["seconds"] > 0
    client = sd.Client(plan, threads=2)
    server = client.server()
    x, w = rng.integers(-900, 901, (2, 40, 20))
    found = client.decrypt(loop(client.encrypt(x, "x"), server.plain(w, "w")))
    assert found.dtype == np.int64
    assert (found == loop(x.astype(object), w.astype(object)) % T).all()
    # The keys of the refresh go where the server's others go, and others encrypt for the client.
    there = sd.Server.from_bytes(plan, server.to_bytes(), threads=1)
    y = loop(there.bind(client.public().encrypt(x, "x")), there.plain(w, "w"))
    assert (client.decrypt(y) == found).all()
    with pytest.raises(sd.FormatError):
        sd.Server.from_bytes(plan, server.to_bytes()[:-100])
    with pytest.raises(sd.FormatError, match="security"):
        sd.Plan.from_json(plan.to_json())


def test_auto_takes_the_cheaper_way() -> None:
    settings: dict[str, Any] = {"bootstrap": "auto", "security": "insecure"}
    small = sd.spec(5, max_abs=3, dtype=int)
    assert sd.plan(lambda x: x * x, x=small, **settings).method == "exact"
    plan = sd.plan(lambda x: x**8 - 1, x=small, **settings)
    assert plan.method == "arrays"
    client = sd.Client(plan, threads=2)
    client.server()
    result = client.encrypt([-3, 0, 1, 2, 3]) ** 8 - 1
    assert result.dtype == np.int64
    assert client.decrypt(result).tolist() == [6560, -1, 0, 255, 6560]


def test_full_size_is_planned() -> None:
    """128 bits: the set that the planner takes, its refreshes and keys, without making them."""
    plan = sd.plan(lambda x: x**100, x=sd.spec(1000, max_abs=1000, dtype=int), bootstrap="X15", modulus=T)
    assert plan.summary["security_bits"] == 128
    assert "refreshes by set X15" in str(plan)
    assert sd.Plan.from_json(plan.to_json()) == plan


def test_refusals() -> None:
    x = sd.spec(5, max_abs=300, dtype=int)
    settings: dict[str, Any] = {"security": "insecure", "x": x}
    with pytest.raises(sd.PlanError, match="modulus=65537"):
        sd.plan(lambda x: x**8, bootstrap="auto", **settings)
    with pytest.raises(sd.PlanError, match="bootstrap="):
        sd.plan(lambda x: x**8, modulus=T, **settings)
    with pytest.raises(sd.PlanError, match="take X15 or X16"):
        sd.plan(lambda x: x**8, bootstrap="A", **settings)
    with pytest.raises(sd.PlanError, match="'X15' or 'X16'"):
        sd.plan(lambda x: x**8, bootstrap=True, **settings)  # type: ignore[arg-type]
    with pytest.raises(sd.PlanError, match="sum them after decryption"):
        sd.plan(lambda x: (x**8).sum(), bootstrap="auto", modulus=T, **settings)
    with pytest.raises(sd.PlanError, match="dtype=int"):
        sd.plan(lambda x: x * x, x=sd.spec(5), error=0.1, modulus=T)


def test_a_context_refreshes_by_itself(ctx: sd.IntegerContext) -> None:
    assert "NO SECURITY" in repr(ctx)
    assert (ctx.modulus, ctx.slots) == (T, 512)
    assert ctx.depth >= 3
    a = np.array([3, -5, 1000, 0, 40000])
    y = ctx.encrypt(a) ** 100
    assert ctx.decrypt(y).tolist() == [pow(int(v), 100, T) for v in a]
    assert "modulo 65537" in repr(y)
    assert y.dtype == np.int64
    b = np.arange(700).reshape(7, 100)
    x = ctx.encrypt(b)
    z = 3 * x - b * x + 1
    for _ in range(5):
        z = z * x - 1
    wanted = 3 * b.astype(object) - b.astype(object) ** 2 + 1
    for _ in range(5):
        wanted = wanted * b - 1
    assert (ctx.decrypt(z) == wanted % T).all()
    known = (x - 100).bounded(700).refresh()
    assert (ctx.decrypt({"known": known})["known"] == b - 100).all()


def test_what_does_not_fit_into_memory(ctx: sd.IntegerContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes of fresh ciphertexts are compared with what is left before any is made."""
    assert ctx.encrypt(np.arange(ctx.slots + 1)).nbytes >= 2 * ctx._core.ciphertext_bytes
    monkeypatch.setattr("sudare._memory.available", lambda: 1 << 20)
    ctx.encrypt([1, 2])
    with pytest.raises(sd.OutOfMemoryError, match="in parts"):
        ctx.encrypt(np.zeros(10**7, np.int64))


def test_what_a_context_refuses(ctx: sd.IntegerContext) -> None:
    x = ctx.encrypt([[1, 2], [3, 4]])
    with pytest.raises(sd.UnsupportedError, match="nothing is rounded"):
        ctx.encrypt([0.5])
    with pytest.raises(sd.InputError, match="max_abs=2") as over:
        ctx.encrypt([1457], max_abs=2)
    assert "1457" not in str(over.value)
    none: list[Any] = [[], np.zeros((0, 3), np.int64), np.int64(3), np.zeros((2, 2, 2), np.int64)]
    for array in none:
        with pytest.raises(sd.ShapeError):
            ctx.encrypt(array)
    for wide in (np.iinfo(np.int64).min, np.iinfo(np.int64).max, -(2**53), 10**40):
        with pytest.raises(sd.InputError, match=r"over 2\^53"):
            ctx.encrypt(np.array([1, wide]))
    for bound in (float("nan"), 0, -5):
        with pytest.raises(sd.SudareError):
            ctx.encrypt([0], max_abs=bound)
    with pytest.raises(sd.UnsupportedError, match="already"):
        ctx.encrypt(x)
    with pytest.raises(sd.UnsupportedError, match="decrypted"):
        ctx.decrypt([1])
    with pytest.raises(sd.UnsupportedError, match="pickle"):
        pickle.dumps(ctx)
    with pytest.raises(sd.SudareError, match="sum them after decryption"):
        x.sum()
    with pytest.raises(sd.SudareError, match="element by element"):
        x @ x
    with pytest.raises(sd.SudareError, match="element by element"):
        x / 2
    with pytest.raises(sd.UnsupportedError, match="no others"):
        sd.context(3, bootstrap="X15")
    with pytest.raises(sd.UnsupportedError):
        ctx.save("x")
    with pytest.raises(sd.UnsupportedError):
        x.to_bytes()
