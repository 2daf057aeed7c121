"""Functions by polynomials: no error over its promise, and nothing outside of an interval.

Random functions on random intervals by polynomials of degree 1 to 31, and their largest distance on a dense
grid and close to its maxima, against the error that is promised. Some dozens run always.
`SUDARE_FUNCTIONS=3895` runs as many (`make functions`), and `SUDARE_FUNCTIONS_FROM` goes on where another run
stopped; every `SUDARE_FUNCTIONS_ENCRYPTED`th (16) is encrypted as well, by turns in a plan and in a context,
on rings without security.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sudare as sd
from numpy.typing import NDArray

COUNT = int(os.environ.get("SUDARE_FUNCTIONS", "64"))
FIRST = int(os.environ.get("SUDARE_FUNCTIONS_FROM", "0"))
EVERY = int(os.environ.get("SUDARE_FUNCTIONS_ENCRYPTED", "16"))
Floats = NDArray[np.float64]

# Its name, the function, what is fitted to, and how its interval is drawn: "short", "above" zero or "any".
Kind = tuple[str, Callable[[Any], Any], Any, str]


def logistic(t: Any) -> Any:
    return np.exp(-np.logaddexp(0, -t))


KINDS: list[Kind] = [
    ("exp", np.exp, np.exp, "short"),
    ("sigmoid", logistic, lambda t: float(logistic(t)), "any"),
    ("tanh", np.tanh, np.tanh, "any"),
    ("tanh of one's own", np.tanh, lambda t: float(np.tanh(t)), "any"),
    ("sqrt", np.sqrt, np.sqrt, "above"),
    ("1/t", np.reciprocal, np.reciprocal, "above"),
    ("1/t of one's own", np.reciprocal, lambda t: 1 / t, "above"),
    ("log", np.log, np.log, "above"),
    ("sin", np.sin, np.sin, "short"),
    ("cos of one's own", np.cos, lambda t: float(np.cos(t)), "short"),
    ("|t|", np.abs, abs, "any"),
    ("relu", lambda t: np.maximum(t, 0), lambda t: max(t, 0.0), "any"),
    ("step", lambda t: np.heaviside(t, 0.5), lambda t: float(np.heaviside(t, 0.5)), "any"),
    ("sign", np.sign, np.sign, "any"),
]


def drawn(seed: int) -> tuple[str, Callable[[Any], Any], Any, tuple[float, float], int]:
    """The function, interval and degree of a seed."""
    rng = np.random.default_rng(seed)
    name, exact, target, where = KINDS[int(rng.integers(len(KINDS)))]
    far = float(10 ** rng.uniform(-1, 0.8 if where == "short" else 1.5))
    if where == "above":
        interval = (far * float(10 ** rng.uniform(-3, -0.1)), far)
    else:
        interval = (-far, far) if rng.random() < 0.6 else (-far * float(rng.uniform(0.1, 0.9)), far)
    return name, exact, target, interval, int(rng.integers(1, 32))


def distance(exact: Callable[[Any], Any], p: Any, interval: tuple[float, float]) -> float:
    """The largest distance on a dense grid, and close to where it is largest there."""
    low, high = interval
    angles = np.linspace(0, np.pi, 20_011)
    grid = (low + high) / 2 - (high - low) / 2 * np.cos(angles)
    # Both sides of a jump.
    beside = np.array([-1e-12, -1e-300, 0.0, 1e-300, 1e-12]) if low < 0 < high else np.array([low, high])
    grid = np.sort(np.clip(np.concatenate([grid, beside]), low, high))
    errors = np.abs(exact(grid) - p(grid))
    most = float(errors.max())
    inner = np.flatnonzero((errors[1:-1] >= errors[:-2]) & (errors[1:-1] >= errors[2:])) + 1
    for at in inner[np.argsort(errors[inner])[-8:]]:
        a, b = grid[at - 1], grid[at + 1]
        for _ in range(12):
            near = np.linspace(a, b, 41)
            found = np.abs(exact(near) - p(near))
            best = int(found.argmax())
            most = max(most, float(found[best]))
            a, b = near[max(best - 1, 0)], near[min(best + 1, 40)]
    return most


@pytest.fixture(scope="module")
def ctx() -> sd.Context:
    return sd.context(depth=3, tile=4, security="insecure", threads=2)


def worst(exact: Callable[[Any], Any], p: Any, interval: tuple[float, float]) -> Floats:
    """Sixteen points, the worst of many among them."""
    grid = np.linspace(*interval, 4001)
    order = np.argsort(np.abs(exact(grid) - p(grid)))
    found: Floats = grid[np.concatenate([order[-12:], order[:4]])].reshape(4, 4)
    return found


def encrypted(ctx: sd.Context, seed: int, error: float) -> bool:
    """Computes the function of a seed encrypted; whether it could be."""
    _, exact, target, interval, degree = drawn(seed)
    p = sd.fit(target, interval, degree)
    x, most = worst(exact, p.chebyshev, interval), max(map(abs, interval))
    if seed // EVERY % 2:
        z = ctx.encrypt(x).apply(p) if seed % 3 else ctx.encrypt(x, max_abs=most).apply(p)
        assert z.error is not None
        assert np.abs(ctx.decrypt(z) - exact(x)).max() <= z.error, drawn(seed)
        return True
    try:
        wanted = 3 * error + 1e-4
        plan = sd.plan(
            lambda X: X.apply(p), X=sd.spec((4, 4), max_abs=most), error=wanted, security="insecure"
        )
    except sd.PlanError:
        return False  # Polynomials of steep steps take more levels than there are.
    client = plan.client(threads=2)
    client.server()
    got = client.decrypt(client.encrypt(x).apply(p))
    assert np.abs(got - exact(x)).max() <= plan.error, drawn(seed)
    return True


def test_no_error_is_over_its_promise(ctx: sd.Context) -> None:
    over, refused, computed = [], [], 0
    for seed in range(FIRST, FIRST + COUNT):
        name, exact, target, interval, degree = drawn(seed)
        try:
            p = sd.fit(target, interval, degree)
        except sd.SudareError as refusal:
            # Two grids that disagree, or an exchange without an end: nothing is promised.
            refused.append((seed, str(refusal)))
            continue
        if (found := distance(exact, p.chebyshev, interval)) > p.error:
            over.append((seed, name, interval, degree, found, p.error))
        if seed % EVERY == 0:
            computed += encrypted(ctx, seed, p.error)
    print(f"{COUNT} functions: {len(refused)} refused, {computed} encrypted, {len(over)} over their promise")
    assert not over, over[:10]
    assert len(refused) <= 2 + COUNT // 100, refused
    assert all("not converge" in why or "between them" in why for _, why in refused), refused
    assert computed > 0


# The names of the package.
OFFERED: list[tuple[Callable[..., Any], Callable[[Any], Any], tuple[float, float]]] = [
    (sd.exp, np.exp, (-1, 1)),
    (sd.sigmoid, logistic, (-8, 8)),
    (sd.sqrt, np.sqrt, (0.1, 4)),
    (sd.reciprocal, np.reciprocal, (0.2, 2)),
]


@pytest.mark.parametrize("degree", [3, 7])
@pytest.mark.parametrize(("offered", "exact", "interval"), OFFERED)
def test_named_functions_keep_their_promise(
    ctx: sd.Context, offered: Any, exact: Any, interval: tuple[float, float], degree: int
) -> None:
    x = np.linspace(*interval, 16).reshape(4, 4)
    z = offered(ctx.encrypt(x, max_abs=interval[1]), interval, degree=degree)
    assert np.abs(ctx.decrypt(z) - exact(x)).max() <= z.error
    plan = sd.plan(
        lambda X: offered(X, interval, degree=degree),
        X=sd.spec((4, 4), max_abs=interval[1]),
        error=1,
        security="insecure",
    )
    client = plan.client()
    client.server()
    # Where a sample of the interval was thought to be the whole: sigmoid on (-8, 8), degree 3, at 1.55516.
    x.flat[0] = np.clip(1.55516, *interval)
    got = client.decrypt(offered(client.encrypt(x), interval, degree=degree))
    assert np.abs(got - exact(x)).max() <= plan.error


def test_signs_and_comparisons(ctx: sd.Context) -> None:
    x = np.array([-1.0, -0.3, 0.3, 0.9])
    for z, wanted in (
        (sd.sign(ctx.encrypt(x), gap=0.3, max_abs=1, degree=7), np.sign(x)),
        (sd.greater(ctx.encrypt(x), 0.0, gap=0.3, max_abs=1, degree=7), x > 0),
    ):
        assert np.abs(ctx.decrypt(z) - wanted).max() <= z.error < 0.4


def test_plans_refuse_what_may_be_outside() -> None:
    def planned(function: Any, **specs: Any) -> sd.Plan:
        return sd.plan(function, **specs, error=0.5, security="insecure")

    x = sd.spec(4, max_abs=20)
    with pytest.raises(
        sd.PlanError, match=r"X is up to 20, and the interval of the function ends at 4.*bounded"
    ):
        planned(lambda X: sd.sigmoid(X, (-4, 4), degree=7), X=x)
    W = np.full((3, 2), 0.9)
    with pytest.raises(sd.PlanError, match=r"X @ .* is up to 2\.7"):
        planned(lambda X: sd.sigmoid(X @ W, (-1, 1), degree=5), X=sd.spec((2, 3)))
    for refused in (
        lambda X: sd.exp(X, (-4, 4), degree=5),
        lambda X: sd.sqrt(X, (1, 4), degree=5),
        lambda X: sd.sign(X, gap=1, max_abs=4, degree=5),
        lambda X: sd.greater(X, 1.0, gap=1, max_abs=20, degree=5),
        lambda X: X.apply(np.sin, (-4, 4), degree=5),
        lambda X: X.apply(sd.fit(np.sin, (-4, 4), 5)),
    ):
        with pytest.raises(sd.PlanError, match=r"X( \+ -1)? is up to 2[01]"):
            planned(refused, X=x)
    # What the refusal says helps, and is right.
    plan = planned(lambda X: sd.sigmoid(sd.bounded(X, 4), (-4, 4), degree=7), X=x)
    client = plan.client()
    client.server()
    v = np.array([1, 4, -4, 0.5])
    got = client.decrypt(sd.sigmoid(sd.bounded(client.encrypt(v), 4), (-4, 4), degree=7))
    assert np.abs(got - logistic(v)).max() <= plan.error
    # A polynomial of NumPy's stands for itself, and is written on an interval that is large enough.
    cubic = np.polynomial.Polynomial([1, 0, -0.5, 0.01])
    plan = sd.plan(lambda X: X.apply(cubic), X=x, error=1e-2, security="insecure")
    client = plan.client()
    client.server()
    v = np.array([20, -20, 3, 0.0])
    assert np.abs(client.decrypt(client.encrypt(v).apply(cubic)) - cubic(v)).max() <= plan.error


def test_contexts_refuse_or_say_how_wrong(ctx: sd.Context) -> None:
    # Data that is known to be beyond.
    with pytest.raises(sd.InputError, match=r"up to 8, and the interval of the function ends at 1"):
        sd.exp(ctx.encrypt([0.5, 3, 8]), (-1, 1), degree=7)
    W = np.full((3, 2), 0.9)
    with pytest.raises(sd.InputError, match="ends at 1"):
        sd.sigmoid(ctx.encrypt(np.ones((2, 3))) @ W, (-1, 1), degree=5)
    # Data that is inside of an interval that ends where its bound does.
    v = np.array([3.9, -3.9, 1, 0])
    z = sd.sigmoid(ctx.encrypt(v), (-4, 4), degree=7)
    assert np.abs(ctx.decrypt(z) - logistic(v)).max() <= z.error <= 2e-3
    # Data that may be outside, and is or is not: its error is honest, and inside it is as small as ever.
    inside = sd.sigmoid(ctx.encrypt([3, -3, 1]), (-3, 3), degree=7)
    outside = sd.sigmoid(ctx.encrypt(v), (-3, 3), degree=7)
    assert np.abs(ctx.decrypt(inside) - logistic(np.array([3, -3, 1]))).max() < 5e-4
    assert 0.05 < np.abs(ctx.decrypt(outside) - logistic(v)).max() <= outside.error == inside.error < 0.2
    # A function that is not there outside of its interval, or of which only the interval is known.
    x = ctx.encrypt([0.5, -1], max_abs=1.5)
    with pytest.raises(sd.InputError, match=r"up to 1\.5"):
        x.apply(lambda t: float(np.arcsin(t)) if abs(t) <= 1 else 1 / 0, (-1, 1), degree=5)
    with pytest.raises(sd.InputError, match=r"up to 1\.5"):
        x.apply(sd.fit(lambda t: t**3, (-1, 1), 3, error=0.1))
    cubic = np.polynomial.Polynomial([1, 0, -0.5, 0.01])
    w = ctx.encrypt(np.array([20.0, -20, 3])).apply(cubic)
    assert w.error is not None
    assert np.abs(ctx.decrypt(w) - cubic(np.array([20, -20, 3]))).max() <= w.error < 0.1


def test_plain_elements_are_looked_at() -> None:
    functions: list[Callable[[], Any]] = [
        lambda: sd.sigmoid(20.0, (-4, 4), degree=7),
        lambda: sd.exp(np.array([0.5, 3]), (-1, 1), degree=7),
        lambda: sd.sqrt(np.array([0.05]), (0.1, 1), degree=7),
        lambda: sd.greater(3.0, 0.0, gap=0.1, max_abs=2, degree=7),
        lambda: sd.fit(np.exp, (-1, 1), 3)(1.5),
    ]
    for function in functions:
        with pytest.raises(sd.InputError, match="outside of the interval"):
            function()
    # Where it is, and not what it is.
    with pytest.raises(sd.InputError, match=r"the element at \(1,\) is outside") as outside:
        sd.exp(np.array([0.5, 1457.0]), (-1, 1), degree=7)
    assert "1457" not in str(outside.value)
    assert sd.sigmoid(800.0, (-1000, 1000), degree=7) == 1
    # A row whose norm is one but for rounding.
    assert sd.exp(1 + 2e-16, (-1, 1), degree=7) == np.exp(1 + 2e-16)


def test_an_estimate_that_cannot_be_had_is_refused() -> None:
    def spike(t: float) -> float:
        return float(np.exp(-((t - 0.3337) ** 2) / 1e-7))

    for degree in (3, 15):
        with pytest.raises(sd.InputError, match=r"between them.*give the error"):
            sd.fit(spike, (-1, 1), degree)
    assert sd.fit(spike, (-1, 1), 3, error=1.05).error == 1.05
    with pytest.raises(sd.InputError, match="over the given error of 5"):
        sd.fit(spike, (-1, 1), 3, error=0.5)
    with pytest.raises(sd.InputError, match="is wanted"):
        sd.fit(np.exp, (-1, 1), 3, error=1e-9)
    # What is known is bounded, what is not is told with a margin.
    known, own = sd.fit(np.tanh, (-16, 16), 15), sd.fit(lambda t: float(np.tanh(t)), (-16, 16), 15)
    assert known.error < own.error < 1.02 * known.error


def test_refusals_suggest_intervals_that_hold(ctx: sd.Context) -> None:
    x = ctx.encrypt([0.5, 3, 8])
    with pytest.raises(sd.UnsupportedError, match=r"sudare\.exp\(x, \(-8, 8\), degree=7\)"):
        np.exp(x)
    with pytest.raises(sd.UnsupportedError, match=r"sudare\.sqrt\(x, \(0\.8, 8\), degree=7\)"):
        np.sqrt(x)
    with pytest.raises(sd.UnsupportedError, match=r"gap=1, max_abs=10, degree=15"):
        _ = x > 2
    with pytest.raises(sd.UnsupportedError, match=r"reciprocal\(x, \(0\.8, 8\), degree=7\)"):
        _ = 1 / x
    W = np.full((3, 2), 0.9)
    with pytest.raises(sd.UnsupportedError, match=r"sudare\.exp\(x, \(-2\.7, 2\.7\), degree=7\)"):
        sd.plan(lambda X: np.exp(X @ W), X=sd.spec((2, 3)), error=1)
