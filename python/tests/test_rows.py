"""Any number of rows, several results, specifications from arrays, and what `ranges` proposes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import sudare as sd

rng = np.random.default_rng(27)
W, B = rng.uniform(-1, 1, (5, 3)), rng.uniform(-1, 1, 3)


def score(X: Any) -> Any:
    return sd.sigmoid(X @ W[:, 0] + 0.25, (-6, 6), degree=15)


@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_one_plan_for_any_number_of_rows(rows: int) -> None:
    plan = sd.plan(score, X=sd.spec((None, 5)), error=0.1, security="insecure")
    assert plan.inputs["X"].shape == (None, 5)
    client = plan.client(threads=2)
    client.server()
    X = rng.uniform(-1, 1, (rows, 5))
    x = client.encrypt(X)
    assert (x.rows, len(x.blocks)) == (rows, -(-rows // plan.block_rows))
    found = client.decrypt(score(x))
    assert found.shape == (rows,)
    assert np.abs(found - score(X)).max() <= plan.error


def test_plans_of_rows_and_of_several_results_travel() -> None:
    def function(X: Any) -> Any:
        return X @ W[:, 0], X.sum(axis=1)

    plan = sd.plan(function, X=sd.spec((None, 5)), error=1e-3)
    again = sd.Plan.from_json(plan.to_json())
    assert again == plan
    assert (again.block_rows, again.inputs) == (plan.block_rows, plan.inputs)
    client = sd.Client(again, threads=2)
    server = sd.Server.from_bytes(plan, client.server().to_bytes(), threads=2)
    X = rng.uniform(-1, 1, (11, 5))
    parts = [part.to_bytes() for part in client.encrypt(X).blocks]
    found = [client.decrypt(function(server.bind(sd.Encrypted.from_bytes(plan, part)))) for part in parts]
    for at, wanted in enumerate(function(X)):
        got = np.concatenate([np.ravel(part[at]) for part in found])[: len(X)]
        assert np.abs(got - wanted).max() <= plan.error


def test_a_million_rows() -> None:
    def weighted(X: Any) -> Any:
        return X @ np.array([0.5, -0.25])

    plan = sd.plan(weighted, X=sd.spec((None, 2)), error=1e-3, security="insecure")
    client = plan.client(threads=2)
    client.server()
    X = rng.uniform(-1, 1, (10**6, 2))
    assert np.abs(client.decrypt(weighted(client.encrypt(X))) - weighted(X)).max() <= plan.error


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "a layer": lambda X: X @ W + B,
    "a table with itself": lambda X: X * X - X[:, :1],
    "centred": lambda X: X - X.mean(axis=1, keepdims=True),
    "turned": lambda X: (W.T @ X.T).T * 2,
    "columns": lambda X: np.stack([X[:, 0], X.sum(axis=1)], axis=1),
    "a constant row": lambda X: np.vstack([B, B])[:1] + X[:, :3],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_each_row(name: str) -> None:
    function, X = FUNCTIONS[name], rng.uniform(-1, 1, (21, 5))
    plan = sd.plan(function, X=sd.spec((None, 5)), error=1e-3, security="insecure")
    client = plan.client(threads=2)
    client.server()
    assert np.abs(client.decrypt(function(client.encrypt(X))) - function(X)).max() <= plan.error


REFUSED: dict[str, tuple[Callable[..., Any], str]] = {
    "a sum": (lambda X: X - X.mean(axis=0), "a sum over them takes several of the rows"),
    "a product": (lambda X: X.T @ X, "a matrix product along them"),
    "a slice": (lambda X: X[:2], "a slice of them"),
    "a mask": (lambda X: X * np.arange(16.0)[:, None][: len(X)], "something else for each"),
    "a number": (lambda X: X.sum(), "a sum over them"),
    "columns first": (lambda X: X.T, "a result has a row for each"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_takes_several_rows_is_refused(name: str) -> None:
    function, told = REFUSED[name]
    with pytest.raises(sd.PlanError, match=told):
        sd.plan(function, X=sd.spec((None, 5)), error=1e-3, security="insecure")


def test_integers_of_any_number_of_rows() -> None:
    weights = np.array([[1, 2], [3, 4], [-5, 6]])
    plan = sd.plan(lambda X: X @ weights, X=sd.spec((None, 3), max_abs=100, dtype=int))
    client = plan.client(threads=2)
    for rows in (1, 333):
        X = rng.integers(-100, 101, (rows, 3))
        np.testing.assert_array_equal(client.decrypt(client.encrypt(X) @ weights), X @ weights)


def test_rows_go_together() -> None:
    plan = sd.plan(
        lambda X, Y: X * Y, X=sd.spec((None, 2)), Y=sd.spec((None, 2)), error=1e-3, security="insecure"
    )
    client = plan.client(threads=2)
    client.server()
    X, Y = rng.uniform(-1, 1, (2, 50, 2))
    x, y = client.encrypt(X, "X"), client.encrypt(Y, "Y")
    assert np.abs(client.decrypt(x * y) - X * Y).max() <= plan.error
    with pytest.raises(sd.ShapeError, match="one by one"):
        x * client.encrypt(Y[:7], "Y")
    with pytest.raises(sd.UnsupportedError, match="block by block"):
        x.to_bytes()
    with pytest.raises(sd.ShapeError):
        client.encrypt(X[:, :1], "X")
    first = sd.Encrypted.from_bytes(plan, x.blocks[0].to_bytes())
    np.testing.assert_array_equal(first.max_abs, x.max_abs)
    with pytest.raises(sd.ShapeError, match="a known number of rows"):
        sd.spec((None, 2), plain=True)
    with pytest.raises(sd.PlanError, match="no batch and no releases"):
        sd.plan(lambda X: X * 2, X=sd.spec((None, 2)), error=1e-3, batch=2)
    with pytest.raises(sd.UnsupportedError, match=r"\(None, 30\)"):
        sd.plan(lambda X: X * X, X=sd.spec((3, 2)), error=1e-3).block_rows  # noqa: B018


class Named(NamedTuple):
    mean: Any
    scores: Any


@dataclasses.dataclass
class Result:
    mean: Any
    scores: Any
    square: Any


SEVERAL: dict[str, Callable[[Any], Any]] = {
    "a tuple": lambda X: (X.mean(axis=0), X @ W),
    "a list": lambda X: [X @ W, X.sum(), X * X],
    "a dictionary": lambda X: {"mean": X.mean(axis=0), "scores": X @ W},
    "a named tuple": lambda X: Named(X.mean(axis=0), X @ W),
    "a dataclass": lambda X: Result(X.mean(axis=0), X @ W, (X @ W) ** 2),
    "one twice": lambda X: (X * 2, X * 2),
}


def alike(found: Any, wanted: Any, error: float) -> None:
    assert type(found) is type(wanted) or isinstance(wanted, (float, np.number))
    if isinstance(wanted, dict):
        assert list(found) == list(wanted)
        found, wanted = list(found.values()), list(wanted.values())
    elif dataclasses.is_dataclass(wanted):
        found, wanted = list(vars(found).values()), list(vars(wanted).values())
    assert len(found) == len(wanted)
    for x, y in zip(found, wanted, strict=True):
        assert np.shape(x) == np.shape(y)
        assert np.abs(x - y).max() <= error


@pytest.mark.parametrize("name", SEVERAL)
def test_several_results(name: str) -> None:
    function, X = SEVERAL[name], rng.uniform(-1, 1, (4, 5))
    plan = sd.plan(function, X=sd.spec(X.shape), error=1e-3, security="insecure")
    client = plan.client(threads=2)
    client.server()
    alike(client.decrypt(function(client.encrypt(X))), function(X), plan.error)


def test_several_results_of_any_number_of_rows() -> None:
    def function(X: Any) -> Any:
        return {"scores": X @ W, "norm": (X * X).sum(axis=1)}

    plan = sd.plan(function, X=sd.spec((None, 5)), error=1e-3, security="insecure")
    client = plan.client(threads=2)
    client.server()
    X = rng.uniform(-1, 1, (45, 5))
    alike(client.decrypt(function(client.encrypt(X))), function(X), plan.error)


def test_several_results_that_there_are_not() -> None:
    for function, told in (
        (lambda X: (X * 2, 3.0), "not float"),
        (lambda X: (), "returns nothing"),
        (lambda X: None, "not NoneType"),
    ):
        with pytest.raises(sd.PlanError, match=told):
            sd.plan(function, X=sd.spec((2, 2)), error=1e-3)
    with pytest.raises(sd.PlanError, match="one result"):
        sd.plan(lambda X: (X * 2, X * X), X=sd.spec((2, 2)), error=1e-3, release=sd.Release(1))
    with pytest.raises(sd.SudareError, match="real matrices"):
        sd.plan(lambda X: (X * 2, X * X), X=sd.spec((2, 2), dtype=int))


def test_specifications_of_arrays() -> None:
    X = rng.uniform(-3, 3, (4, 5))
    assert sd.spec(X, max_abs=3) == sd.spec((4, 5), max_abs=3)
    assert sd.spec(X, max_abs="data").max_abs == np.abs(X).max()
    assert sd.spec(X[0] / 3).shape == (5,)
    assert sd.spec([[1, 0], [0, 1]]).shape == (2, 2)
    for given in (lambda: sd.spec(X), lambda: sd.plan(lambda X: X * 2, X=X, error=1e-3)):
        with pytest.raises(sd.InputError, match=r"over max_abs=1; say what they are up to"):
            given()
    plan = sd.plan(lambda X: X @ X.T, X=X / 3, error=1e-3)
    assert plan.inputs["X"] == sd.spec((4, 5))


def test_ranges() -> None:
    def model(X: Any, y: Any) -> Any:
        Z = sd.bounded(X @ W, max_abs=0.001)
        return sd.sigmoid(Z, (-1, 1), degree=3) + sd.sqrt(y * y + 1, (3, 4), degree=3)[:, None]

    X, y = rng.uniform(-2, 2, (50, 5)), rng.uniform(-1, 1, 50)
    found = sd.ranges(model, X, y, margin=0.5)
    assert 1.5 * np.abs(X).max() <= found.max_abs["X"] <= 1.7 * np.abs(X).max()
    assert found.specs["y"].shape == (50,)
    by = {met.function: met for met in found.met}
    assert list(by) == ["bounded", "sigmoid", "sqrt"]
    Z = X @ W
    assert by["sigmoid"].interval[0] < Z.min() - 0.4 * np.ptp(Z)
    assert by["bounded"].max_abs > np.abs(Z).max()
    assert 0 < by["sqrt"].interval[0] < 1
    assert "sigmoid: met" in str(found)
    # Outside of it, intervals are watched again.
    with pytest.raises(sd.InputError):
        model(X, y)
    met = sd.ranges(
        lambda X: sd.maximum(X, 0.5, max_abs=1, degree=7) + sd.greater(X, 0, gap=0.1, max_abs=1, degree=7), X
    )
    assert [m.function for m in met.met] == ["maximum", "greater"]
    with pytest.raises(sd.InputError, match="finite"):
        sd.ranges(lambda X: X, np.array([np.nan]))
    with pytest.raises(sd.InputError, match="margin"):
        sd.ranges(lambda X: X, X, margin=-1)


def test_a_plan_by_ranges() -> None:
    def model(X: Any, interval: Any) -> Any:
        return sd.sigmoid(X @ W[:, 0], interval, degree=15)

    X = rng.uniform(-2, 2, (50, 5))
    found = sd.ranges(lambda X: model(X, (-1, 1)), X)
    interval = found.met[0].interval

    def planned(X: Any) -> Any:
        return model(sd.bounded(X, max_abs=found.max_abs["X"]), (-15, 15))

    assert max(map(abs, interval)) < 15
    plan = sd.plan(planned, **found.specs, error=0.5, security="insecure")
    client = plan.client(threads=2)
    client.server()
    assert np.abs(client.decrypt(planned(client.encrypt(X))) - planned(X)).max() <= plan.error
