"""Contexts against NumPy, and what they refuse."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sudare as sd
from conftest import ERROR, Floats

Matrices = Callable[..., list[Floats]]


@pytest.fixture(scope="module")
def ctx() -> sd.Context:
    return sd.context(depth=2, threads=2, tile=4)


def close(ctx: sd.Context, got: Any, expected: Floats) -> None:
    assert isinstance(got, sd.Encrypted)
    assert got.shape == expected.shape
    assert np.abs(ctx.decrypt(got) - expected).max() < ERROR


def test_chains(ctx: sd.Context, matrices: Matrices) -> None:
    a, b, c = matrices((5, 7), (7, 3), (3, 6))
    x, y, z = ctx.encrypt(a), ctx.encrypt(b, max_abs=1), ctx.encrypt(c)
    close(ctx, (x @ y @ z).T, (a @ b @ c).T)
    close(ctx, (x @ y).sum(axis=0), (a @ b).sum(axis=0))
    close(ctx, (x @ y).T @ x, (a @ b).T @ a)
    close(ctx, 0.5 * (x @ y - 2) * (x @ y) + 1, 0.5 * (a @ b - 2) * (a @ b) + 1)


def test_numpy_and_plain_operands(ctx: sd.Context, matrices: Matrices) -> None:
    a, b, v = matrices((5, 4), (4, 4), (4,))
    x, w = ctx.encrypt(a), ctx.encrypt(v)
    close(ctx, np.matmul(x, b), a @ b)
    close(ctx, a @ w, a @ v)
    close(ctx, x @ w, a @ v)
    close(ctx, np.add(a, x) * v, 2 * a * v)
    close(ctx, np.mean(x, axis=1), a.mean(axis=1))
    close(ctx, np.sum(-x), np.asarray(-a.sum()))
    close(ctx, np.concatenate([x, a]), np.concatenate([a, a]))


def test_bounds_are_public(ctx: sd.Context) -> None:
    assert ctx.encrypt([[3.0, -5.0]]).max_abs == 8
    assert ctx.encrypt([[0.0]]).max_abs == 1
    assert ctx.encrypt([[0.25]]).max_abs == 0.25
    with pytest.raises(sd.InputError):
        ctx.encrypt([[2.0]], max_abs=1)


def test_refusals(ctx: sd.Context) -> None:
    x = ctx.encrypt(np.eye(3))
    with pytest.raises(sd.LevelError, match="depth over 2"):
        x @ x @ x @ x
    with pytest.raises(sd.ShapeError):
        x @ np.ones((4, 4))
    with pytest.raises(sd.ShapeError):
        ctx.encrypt(np.ones((2, 3, 3)))
    with pytest.raises(sd.UnsupportedError):
        np.asarray(x)
    for held in (x, ctx):
        with pytest.raises(sd.UnsupportedError, match="does not pickle"):
            pickle.dumps(held)
    with pytest.raises(sd.PlanError):
        sd.context(depth=0)
    with pytest.raises(sd.PlanError):
        sd.context(depth=1, security=100)


def test_bootstrap_is_refused_where_it_cannot_be(ctx: sd.Context) -> None:
    x = ctx.encrypt(np.eye(3))
    with pytest.raises(sd.UnsupportedError, match="does not bootstrap"):
        x.refresh()
    with pytest.raises(sd.PlanError, match="no bootstrapping set"):
        sd.context(bootstrap="Z")
    with pytest.raises(sd.PlanError, match="with all slots"):
        sd.context(bootstrap="D")
    with pytest.raises(sd.PlanError, match="at most 1 between refreshes"):
        sd.context(2, bootstrap="C")
    with pytest.raises(sd.PlanError, match="a scale of 33 bits"):
        sd.context(bootstrap="C", scale_bits=40)
    with pytest.raises(sd.UnsupportedError, match="name of a set"):
        sd.context(bootstrap=3)  # type: ignore[call-overload]


def test_repr(ctx: sd.Context) -> None:
    assert "secret key hidden" in repr(ctx)
    assert "depth 2" in repr(ctx)
    x = ctx.encrypt([1.0, 2.0])
    assert repr(x).startswith(f"<sudare ckks (2,) float64 up to 2 ± {x.error:.1e}"[:-3])
    assert ", level 6/6, " in repr(x)
    # What is smaller than its error is seen to be.
    y = x * 1e-12
    assert y.error is not None
    assert y.max_abs <= 2e-12 < 1e-9 < y.error


def test_release() -> None:
    ctx = sd.context(1, tile=4, threads=2, scale_bits=55, release=sd.Release(2, 20))
    rng = np.random.default_rng(8)
    a, b = rng.uniform(-1, 1, (3, 4)), rng.uniform(-1, 1, (4, 3))
    z = ctx.encrypt(a) @ ctx.encrypt(b)
    promised = ctx.released_error(z)
    assert np.abs(ctx.decrypt(z, release=True) - a @ b).max() <= promised < 0.1
    with pytest.raises(sd.ReleaseError, match=r"release=True .* private=True"):
        ctx.decrypt(z)
    assert np.abs(ctx.decrypt(z, private=True) - a @ b).max() < 1e-6 * promised + 1e-6
    assert ctx.releases_left == 1
    ctx.decrypt(z, release=True)
    with pytest.raises(sd.ReleaseError, match="all are used"):
        ctx.decrypt(z, release=True)
    with pytest.raises(sd.UnsupportedError, match="release=True"):
        ctx.decrypt(z, release=sd.Release(1))  # type: ignore[arg-type]
