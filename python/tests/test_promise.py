"""The promise of `error`, from Python: the true error against exact fractions, for elements of every kind."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest
import sudare as sd
from conftest import Floats

FILLINGS = ("most", "signs", "one", "constant", "random")


def filled(kind: str, shape: tuple[int, int], bound: float, rng: np.random.Generator) -> Floats:
    values = np.zeros(shape)
    if kind == "most":
        values += bound
    elif kind == "signs":
        values = bound * rng.choice([-1.0, 1.0], shape)
    elif kind == "one":
        values[rng.integers(shape[0]), rng.integers(shape[1])] = bound
    elif kind == "constant":
        values += bound / 3
    else:
        values = rng.uniform(-bound, bound, shape)
    return values


def true_error(a: Floats, b: Floats, found: Floats) -> float:
    exact = [[Fraction(float(x)) for x in row] for row in a], [[Fraction(float(x)) for x in row] for row in b]
    m, k, n = a.shape[0], a.shape[1], b.shape[1]
    return max(
        float(abs(sum(exact[0][i][t] * exact[1][t][j] for t in range(k)) - Fraction(float(found[i, j]))))
        for i in range(m)
        for j in range(n)
    )


def keeps(plan: sd.Plan, a: tuple[int, int], b: tuple[int, int], rng: np.random.Generator) -> None:
    client = sd.Client(plan, threads=1)
    client.server()
    for kind in FILLINGS:
        bounds = [s.max_abs for s in plan.inputs.values()]
        x, y = filled(kind, a, bounds[0], rng), filled(kind, b, bounds[1], rng)
        z = client.encrypt(x, "A") @ client.encrypt(y, "B")
        assert true_error(x, y, client.decrypt(z)) <= plan.error, (kind, str(plan))


def product(a: tuple[int, int], b: tuple[int, int], bounds: tuple[float, float], error: float) -> sd.Plan:
    left, right = sd.spec(a, max_abs=bounds[0]), sd.spec(b, max_abs=bounds[1])
    return sd.plan(lambda A, B: A @ B, A=left, B=right, error=error)


def test_random_plans() -> None:
    rng, kept = np.random.default_rng(7), 0
    for _ in range(24):
        m, k, n = (int(side) for side in rng.integers(1, 10, 3))
        left, right = (float(10 ** rng.uniform(-8, 12)) for _ in range(2))
        error = float(10 ** rng.uniform(-12, -1)) * left * right * k
        try:
            plan = product((m, k), (k, n), (left, right), error)
        except sd.PlanError:
            continue
        assert plan.error <= error
        keeps(plan, (m, k), (k, n), rng)
        kept += 1
    assert kept >= 10


@pytest.mark.parametrize(("bound", "error"), [(1e8, 1.0), (1e7, 1e-2), (1e6, 1e-4)])
def test_near_the_limit_of_doubles(bound: float, error: float) -> None:
    rng = np.random.default_rng(8)
    with pytest.raises(sd.PlanError, match="dtype=int") as refusal:
        product((8, 8), (8, 8), (bound, bound), error)
    # What the refusal asks for is enough.
    told = re.search(r"ask for error=(\S+)", str(refusal.value))
    assert told is not None
    keeps(product((8, 8), (8, 8), (bound, bound), float(told[1])), (8, 8), (8, 8), rng)
    # So is what it names.
    spec = sd.spec((8, 8), max_abs=int(bound), dtype=int)
    plan = sd.plan(lambda A, B: A @ B, A=spec, B=spec)
    a, b = (rng.integers(-int(bound), int(bound) + 1, (8, 8)) for _ in range(2))
    client = plan.client()
    assert np.array_equal(client.decrypt(client.encrypt(a, "A") @ client.encrypt(b, "B")), a @ b)
