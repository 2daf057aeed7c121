"""Plans whose values are refreshed, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sudare as sd

SPEC = sd.spec((3, 3))


def power(P: Any, A: Any) -> Any:
    """Transitions, eight steps on; probabilities stay below one."""
    for _ in range(8):
        P = (P @ A).bounded(1)
    return P


@pytest.fixture(scope="module")
def plan() -> sd.Plan:
    """Set A over a small ring without security."""
    return sd.plan(
        power, P=SPEC, A=SPEC, error=0.1, bootstrap="A", method="bootstrapped", security="insecure"
    )


def test_a_plan_refreshes_where_it_says(plan: sd.Plan) -> None:
    shown = str(plan)
    assert "refreshes by set A: keys" in shown
    assert "after operation" in shown
    client = sd.Client(plan, threads=2)
    server = client.server()
    rng = np.random.default_rng(7)
    p, a = (m / m.sum(axis=1, keepdims=True) for m in rng.uniform(0.1, 1, (2, 3, 3)))
    wanted = p @ np.linalg.matrix_power(a, 8)
    x, y = client.encrypt(p, "P"), client.encrypt(a, "A")
    error = np.abs(client.decrypt(power(x, y)) - wanted).max()
    assert error < 1e-5
    assert error < plan.error
    # The keys to bootstrap with go where the server's others go.
    there = sd.Server.from_bytes(plan, server.to_bytes(), threads=1)
    again = power(there.bind(x), there.bind(y))
    assert np.abs(client.decrypt(again) - wanted).max() < 1e-5
    with pytest.raises(sd.FormatError):
        sd.Server.from_bytes(plan, server.to_bytes()[:-100])


def test_what_has_no_security_does_not_travel(plan: sd.Plan) -> None:
    with pytest.raises(sd.FormatError, match="security"):
        sd.Plan.from_json(plan.to_json())


def test_the_cheaper_way_is_taken() -> None:
    """A ring with levels for everything where it costs less, and wherever no bootstrap is asked for."""
    short = sd.plan(lambda P, A: P @ A @ A, error=1e-3, bootstrap="auto", security="insecure", P=SPEC, A=SPEC)
    assert short.method == "circuit"
    assert "bootstrapped" in {c["method"] for c in short.considered}
    leveled = sd.plan(lambda P, A: P @ A @ A, error=1e-3, security="insecure", P=SPEC, A=SPEC)
    assert "bootstrapped" not in {c["method"] for c in leveled.considered}


def test_refusals() -> None:
    with pytest.raises(sd.PlanError, match="no bootstrapping set"):
        sd.plan(lambda A: A * A, A=SPEC, error=1e-3, bootstrap="Z")
    with pytest.raises(sd.PlanError, match="'auto' or the name"):
        sd.plan(lambda A: A * A, A=SPEC, error=1e-3, bootstrap=True)  # type: ignore[arg-type]
    with pytest.raises(sd.PlanError, match="known bound"):
        sd.plan(lambda A: (A * A).bounded(0), A=SPEC, error=1e-3)
