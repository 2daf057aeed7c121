"""Random expressions against NumPy and the promised errors: in contexts, plans, remotely and by dask.

Some dozens run always. `SUDARE_EXPRESSIONS=500` runs as many (`make expressions`), of twelve
five in contexts, five in plans, one on a server of its own and one by tiles, and says how much of their
promises errors took; `SUDARE_EXPRESSIONS_FROM` goes on where another run stopped.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import sudare as sd
from conftest import serving
from expressions import Case, random_case

CASES = int(os.environ.get("SUDARE_EXPRESSIONS", "48"))
FIRST = int(os.environ.get("SUDARE_EXPRESSIONS_FROM", "0"))
# Of a result whose elements are up to one; larger ones have larger errors.
ERROR = 1e-4
# Errors over what is promised of them, by the place where they were made.
TAKEN: dict[str, list[float]] = {}


def of(*rests: int) -> list[int]:
    """The seeds of a place."""
    return [seed for seed in range(FIRST, FIRST + CASES) if seed % 12 in rests]


@pytest.fixture(scope="module", autouse=True)
def figures() -> Iterator[None]:
    yield
    if "SUDARE_EXPRESSIONS" in os.environ:
        for place, parts in TAKEN.items():
            print(
                f"\n{place}: {len(parts)} expressions, errors up to {max(parts):.2g} of the promised", end=""
            )
        print()


@pytest.fixture(scope="module")
def ctx() -> sd.Context:
    return sd.context(depth=12, tile=4, security="insecure", threads=2)


@pytest.fixture(scope="module")
def away(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sd.Remote]:
    with serving(tmp_path_factory.mktemp("serve")) as (url, token):
        yield sd.remote(url, token=token)


def agrees(case: Case, got: Any, promised: float, place: str) -> None:
    wanted = np.asarray(case.result)
    assert got.shape == wanted.shape, case.text
    distance = float(np.abs(got - wanted).max())
    assert distance <= ERROR * max(1.0, np.abs(wanted).max()), f"{case.text}: {distance}"
    assert distance <= promised, case.text
    TAKEN.setdefault(place, []).append(distance / promised)


@pytest.mark.parametrize("seed", of(0, 1, 2, 3, 4))
def test_in_a_context(ctx: sd.Context, seed: int) -> None:
    case = random_case(seed)
    values = {n: v if n in case.plain else ctx.encrypt(v, max_abs=1) for n, v in case.inputs.items()}
    found = case.function(values)
    agrees(case, ctx.decrypt(found), found.error, "contexts")


def planned(case: Case, security: int | Literal["insecure"]) -> sd.Plan:
    specs: dict[str, Any] = {
        n: sd.spec(v.shape, max_abs=1, plain=n in case.plain) for n, v in case.inputs.items()
    }

    def function(**values: Any) -> Any:
        return case.function(values)

    error = ERROR * max(1.0, float(np.abs(case.result).max()))
    return sd.plan(function, **specs, error=error, security=security)


def encrypted(case: Case, client: sd.Client) -> Mapping[str, Any]:
    return {n: v if n in case.plain else client.encrypt(v, n) for n, v in case.inputs.items()}


@pytest.mark.parametrize("seed", of(5, 6, 7, 8, 9))
def test_in_a_plan(seed: int) -> None:
    case = random_case(seed)
    plan = planned(case, "insecure")
    client = plan.client(threads=2)
    client.server()
    got = client.decrypt(case.function(encrypted(case, client)))
    agrees(case, got, plan.error, "plans")


@pytest.mark.parametrize("seed", of(10))
def test_remotely(away: sd.Remote, seed: int) -> None:
    """Operation by operation, and now and then in one job."""
    case = random_case(seed, depth=3)
    plan = planned(case, 128)
    client = plan.client(threads=2)
    server = away.server(client)
    values = encrypted(case, client)
    whole = seed % 24 == 10 and set(plan.inputs) == set(values) - case.plain
    found = server.run(*values.values()) if whole else case.function(values)
    agrees(case, client.decrypt(found).reshape(np.shape(case.result)), plan.error, "remotely")


@pytest.mark.parametrize("seed", of(11))
def test_by_tiles(tmp_path: Path, seed: int) -> None:
    """Products of stored matrices and sums of some, cut at random."""
    pytest.importorskip("dask.array")
    rng = np.random.default_rng(seed)
    m, k, n = (int(side) for side in rng.integers(1, 150, 3))
    a, b = rng.uniform(-1, 1, (m, k)), rng.uniform(-1, 1, (k, n))
    left, right = sd.spec((m, k)), sd.spec((k, n))
    plan = sd.plan(lambda A, B: A @ B, A=left, B=right, error=ERROR * k, method="coefficient")
    client = plan.client(threads=2)
    server = client.server()
    for name, x in (("A", a), ("B", b)):
        sd.store(tmp_path / name, x, client=client, name=name)
    inner = int(rng.integers(1, 5))
    x = sd.dask.array(sd.open(tmp_path / "A", server=server), (int(rng.integers(1, 5)), inner))
    y = sd.dask.array(sd.open(tmp_path / "B", server=server), (inner, int(rng.integers(1, 5))))
    z, times = x @ y, int(rng.integers(1, 3))
    for _ in range(times - 1):
        z = z + x @ y
    try:
        got = client.decrypt(z.compute(scheduler="threads"))
    except sd.PrecisionError:
        # The modulus of a plan of one product may have no bit to spare for a sum of two: that is refused.
        assert times > 1
        got, times = client.decrypt((x @ y).compute(scheduler="threads")), 1
    case = Case(
        f"{times} * (A @ B), {m}×{k}×{n}", lambda v: times * (v["A"] @ v["B"]), {"A": a, "B": b}, frozenset()
    )
    assert np.abs(got - case.result).max() <= times * plan.error, case.text
    TAKEN.setdefault("by dask", []).append(float(np.abs(got - case.result).max()) / (times * plan.error))
