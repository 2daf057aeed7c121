"""A context says what a computation would take before it is done."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
import sudare as sd
from sudare import _progress


@pytest.fixture(scope="module")
def ctx() -> sd.Context:
    return sd.context(depth=2, tile=4, security="insecure", threads=1)


def test_time_and_bytes_are_about_those_of_the_work(ctx: sd.Context) -> None:
    a, b = np.ones((24, 16)), np.ones((16, 20))
    told = ctx.estimate(lambda A, B: (A @ B) * 0.5 + 1, A=a, B=sd.spec(b.shape))
    x, y = ctx.encrypt(a), ctx.encrypt(b)
    taken = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        z = (x @ y) * 0.5 + 1
        taken = min(taken, time.perf_counter() - began)
    assert told.seconds / 5 < taken < 5 * told.seconds
    assert x.nbytes + y.nbytes + z.nbytes < told.nbytes < 4 * (x.nbytes + y.nbytes + z.nbytes)
    assert "MB" in str(told)
    assert str(told).startswith("about")


def test_more_is_more(ctx: sd.Context) -> None:
    small = ctx.estimate(lambda A: A @ A, A=np.ones((8, 8)))
    large = ctx.estimate(lambda A: A @ A, A=np.ones((32, 32)))
    # 64 times the pairs of tiles, 16 times the tiles.
    assert 16 * small.seconds * 0.999 <= large.seconds <= 64 * small.seconds * 1.001
    assert large.nbytes == 16 * small.nbytes


def test_what_is_long_or_large_is_told(ctx: sd.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.warns(sd.CostWarning, match="this computation takes about"):
        ctx.estimate(lambda A: A @ A.T, A=sd.spec((10_000, 10_000)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ctx.estimate(lambda A: A + 1, A=np.ones(4))
    monkeypatch.setattr(_progress, "LARGE", 1.0)
    with pytest.warns(sd.CostWarning, match="GB"):
        ctx.estimate(lambda A: A + 1, A=np.ones(4))


def test_refusals(ctx: sd.Context) -> None:
    with pytest.raises(sd.ShapeError):
        ctx.estimate(lambda A, B: A @ B, A=np.ones((2, 3)), B=np.ones((2, 3)))
    with pytest.raises(sd.ShapeError, match="matrix or a vector"):
        ctx.estimate(lambda A: A, A=np.ones((2, 3, 4)))
    with pytest.raises(sd.PlanError, match="return"):
        ctx.estimate(lambda A: None, A=np.ones(3))
    with pytest.raises(sd.UnsupportedError):
        ctx.estimate(lambda A: np.exp(A), A=np.ones(3))
