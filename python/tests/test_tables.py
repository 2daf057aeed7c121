"""Contexts of tables over whole ciphertexts, polynomials and refreshes, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sudare as sd
from conftest import Floats


@pytest.fixture(scope="module")
def ctx() -> sd.Context:
    """Set A over a ring of 1024 slots without security: tiles of 128×8."""
    return sd.context(bootstrap="A", columns=8, security="insecure", threads=2)


@pytest.fixture
def table() -> Floats:
    return np.random.default_rng(7).uniform(-1, 1, (140, 11))


def close(ctx: sd.Context, got: Any, expected: Any, error: float = 1e-5) -> None:
    assert isinstance(got, sd.Encrypted)
    assert got.shape == np.shape(expected)
    assert np.abs(ctx.decrypt(got) - expected).max() < error


def test_broadcasting_is_numpys(ctx: sd.Context, table: Floats) -> None:
    row, column = table[0], table[:, :1]
    x, r, c = ctx.encrypt(table, max_abs=1), ctx.encrypt(row, max_abs=1), ctx.encrypt(column, max_abs=1)
    close(ctx, x + r, table + row)
    close(ctx, r - x, row - table)
    close(ctx, x * c, table * column)
    close(ctx, c * r, column * row)
    close(ctx, x * row, table * row)
    close(ctx, column - x, column - table)
    close(ctx, r * column, row * column)
    close(ctx, 2 * (1 - x) / 4, 2 * (1 - table) / 4)
    close(ctx, r * r.sum(), row * row.sum())
    # Vectors of one length that lie across and along.
    sums = x.sum(axis=1)
    close(ctx, sums * table[:, 0], table.sum(axis=1) * table[:, 0])
    close(ctx, sums + ctx.encrypt(table[:, 0]), table.sum(axis=1) + table[:, 0])
    for wrong in (table[:, 0], ctx.encrypt(table[:, 0]), np.ones((2, 3, 3))):
        with pytest.raises(sd.ShapeError):
            x + wrong
        with pytest.raises(sd.ShapeError):
            x * wrong


def test_rows_by_whole_ciphertexts(ctx: sd.Context, table: Floats) -> None:
    x, column = ctx.encrypt(table, max_abs=1), ctx.encrypt(table[:, :1], max_abs=1)
    close(ctx, x[:128], table[:128])
    close(ctx, x[128:], table[128:])
    close(ctx, x[-12:].sum(axis=0), table[-12:].sum(axis=0))
    close(ctx, x[:128] * column[:128], table[:128] * table[:128, :1])
    close(ctx, x.sum(axis=1)[128:], table.sum(axis=1)[128:])
    assert x[:].level == x.level == x[:128].level
    for refused in (slice(1, None), slice(0, 64), slice(0, 1), slice(None, None, 2), 0):
        with pytest.raises(sd.PlanError, match="multiples of 128"):
            x[refused]
    with pytest.raises(sd.PlanError, match="between rows alone"):
        x[:, 0]


def test_sums_and_products_with_vectors(ctx: sd.Context, table: Floats) -> None:
    w, v = np.linspace(-1, 1, 11), np.linspace(1, -1, 140)
    x = ctx.encrypt(table, max_abs=1)
    close(ctx, x.sum(axis=0), table.sum(axis=0), 1e-4)
    close(ctx, np.mean(x, axis=1), table.mean(axis=1))
    close(ctx, np.sum(x), table.sum(), 1e-3)
    close(ctx, x @ w, table @ w, 1e-4)
    close(ctx, x @ ctx.encrypt(w), table @ w, 1e-4)
    close(ctx, v @ x, v @ table, 1e-4)
    close(ctx, table @ ctx.encrypt(w), table @ w, 1e-4)
    # Xᵀ(X w): a product along, the other across, and nothing is turned.
    close(ctx, (x @ ctx.encrypt(w)) @ x, (table @ w) @ table, 1e-3)
    close(ctx, ctx.encrypt(v) @ x, v @ table, 1e-4)
    close(ctx, ctx.encrypt(w) @ ctx.encrypt(w), w @ w)
    close(ctx, x @ ctx.encrypt(w[:, None]), table @ w[:, None], 1e-4)
    with pytest.raises(sd.PlanError, match="without columns"):
        x @ np.ones((11, 3))
    with pytest.raises(sd.PlanError, match="write v @ X"):
        x.T  # noqa: B018
    with pytest.raises(sd.ShapeError):
        x @ v


def test_functions_by_polynomials(ctx: sd.Context, table: Floats) -> None:
    x = ctx.encrypt(table, max_abs=1)
    exp = sd.fit(np.exp, (-1, 1), degree=7)
    assert exp.levels == 3
    y = x.apply(exp)
    close(ctx, y, np.exp(table), exp.error + 1e-5)
    close(ctx, y, exp(table))
    assert y.level == 6
    # The error that it carries has the fit's in it.
    assert y.error is not None
    assert y.error >= exp.error
    close(ctx, x.apply(np.cos, interval=(-1, 1), degree=7), np.cos(table))
    # A wide interval, brought to [−1, 1]: one level.
    wide = 30 * table
    z = ctx.encrypt(wide).apply(lambda t: 1 / (1 + np.exp(-t / 5)), interval=(-30, 30), degree=31)
    close(ctx, z, 1 / (1 + np.exp(-wide / 5)), 2e-3)
    assert z.level == 3
    cubic = np.polynomial.Polynomial([0, 1.5, 0, -0.5])
    close(ctx, x.apply(cubic), cubic(table))
    chebyshev = np.polynomial.Chebyshev.interpolate(np.sqrt, 5, domain=[1, 2])
    close(ctx, (x / 4 + 1.5).apply(chebyshev), chebyshev(table / 4 + 1.5))
    # Nothing of what stands beside a table gets into its sums.
    close(ctx, y.sum(axis=0), np.exp(table).sum(axis=0), 1e-3)


def test_refusals(ctx: sd.Context, table: Floats) -> None:
    x = ctx.encrypt(table, max_abs=1)
    with pytest.raises(sd.UnsupportedError, match="interval="):
        x.apply(np.exp)
    with pytest.raises(sd.InputError, match="an interval is"):
        x.apply(np.exp, interval=3, degree=2)  # type: ignore[arg-type]
    with pytest.raises(sd.UnsupportedError, match="of its own"):
        x.apply(sd.fit(np.exp, (-1, 1), 3), degree=4)
    with pytest.raises(sd.InputError, match="lower end"):
        sd.fit(np.exp, (1, -1), 3)
    with pytest.raises(sd.InputError):
        sd.fit(lambda t: np.nan, (0, 1), 3)
    with pytest.raises(ZeroDivisionError):
        sd.fit(lambda t: 1 / 0, (0, 1), 3)
    with pytest.raises(sd.LevelError, match="a polynomial takes 10"):
        x.apply(np.polynomial.Chebyshev.basis(512))
    with pytest.raises(sd.PlanError, match="power of two"):
        sd.context(columns=30)
    with pytest.raises(sd.PlanError, match="refreshes by itself"):
        sd.context(auto_refresh=True)


def test_refreshes(ctx: sd.Context) -> None:
    assert "NO SECURITY" in repr(ctx)
    assert "9 levels by set A" in repr(ctx)
    v = np.linspace(-1, 1, 11)
    x = ctx.encrypt(v, max_abs=1)
    assert ", 9 of 9 levels to the next refresh, " in repr(x)
    y = x * x * x
    assert y.level == 7
    y = y.refresh(max_abs=1)
    assert y.level == 9
    close(ctx, y * y, v**6)
    # The error that is carried is never over what bounds themselves allow: twice that of each of the pair.
    z = y
    for _ in range(4):
        z = (64 * z - 64 * z + y).bounded(1).refresh()
    assert z.error is not None
    assert z.max_abs == 1
    assert 2.5 < z.error < 4.5
    close(ctx, z, v**3)


def test_automatic_refreshes() -> None:
    ctx = sd.context(bootstrap="A", columns=8, security="insecure", threads=2, auto_refresh=True)
    v = np.linspace(-0.9, 1, 11)
    x, wanted = ctx.encrypt(v, max_abs=1), v.copy()
    y = x
    for _ in range(15):
        y, wanted = (y * x).bounded(1), wanted * v
    close(ctx, y, wanted)
    for _ in range(3):
        y, wanted = y.apply(np.sin, interval=(-1, 1), degree=15), np.sin(wanted)
    close(ctx, y, wanted)
