"""Random expressions against NumPy, in contexts and in plans.

Some dozens run always. `SUDARE_EXPRESSIONS=2000` runs as many, half of them in plans (`make expressions`),
and `SUDARE_EXPRESSIONS_FROM` goes on where another run stopped.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import sudare as sd
from expressions import Case, random_case

CASES = int(os.environ.get("SUDARE_EXPRESSIONS", "48"))
FIRST = int(os.environ.get("SUDARE_EXPRESSIONS_FROM", "0"))
# Of a result whose elements are up to one; larger ones have larger errors.
ERROR = 1e-4


@pytest.fixture(scope="module")
def ctx() -> sd.Context:
    return sd.context(depth=12, tile=4, security="insecure", threads=2)


def agrees(case: Case, got: Any, error: float) -> None:
    wanted = np.asarray(case.result)
    assert got.shape == wanted.shape, case.text
    distance = np.abs(got - wanted).max()
    assert distance <= error * max(1.0, np.abs(wanted).max()), f"{case.text}: {distance}"


@pytest.mark.parametrize("seed", range(FIRST, FIRST + CASES, 2))
def test_in_a_context(ctx: sd.Context, seed: int) -> None:
    case = random_case(seed)
    values = {n: v if n in case.plain else ctx.encrypt(v, max_abs=1) for n, v in case.inputs.items()}
    found = case.function(values)
    got = ctx.decrypt(found)
    agrees(case, got, ERROR)
    assert np.abs(got - case.result).max() <= found.error, case.text


@pytest.mark.parametrize("seed", range(FIRST + 1, FIRST + CASES, 2))
def test_in_a_plan(seed: int) -> None:
    case = random_case(seed)
    specs: dict[str, Any] = {
        n: sd.spec(v.shape, max_abs=1, plain=n in case.plain) for n, v in case.inputs.items()
    }

    def function(**values: Any) -> Any:
        return case.function(values)

    error = ERROR * max(1.0, float(np.abs(case.result).max()))
    plan = sd.plan(function, **specs, error=error, security="insecure")
    client = plan.client(threads=2)
    client.server()
    values: Mapping[str, Any] = {
        n: v if n in case.plain else client.encrypt(v, n) for n, v in case.inputs.items()
    }
    got = client.decrypt(case.function(values))
    agrees(case, got, ERROR)
    assert np.abs(got - case.result).max() <= plan.error, case.text
