"""Estimators that iterate on encrypted tables, on a small ring, against the same steps in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sudare as sd
from conftest import Floats
from sudare import learn
from test_learn import classified


@pytest.fixture(scope="module")
def ctx() -> sd.Context:
    """Tables of eight columns, with the levels of set A."""
    return sd.context(bootstrap="A", columns=8, security="insecure", threads=2)


@pytest.fixture(scope="module")
def cancer() -> tuple[Floats, Any]:
    """Six measurements of 200 tumours, brought to one size."""
    x, y = classified("breast_cancer.csv", slice(0, 6))
    x, y = x[:200], y[:200]
    return (x - x.mean(axis=0)) / x.std(axis=0), y


@pytest.mark.parametrize("penalty", [np.inf, 0.05])
@pytest.mark.parametrize("intercept", [True, False])
def test_descent(ctx: sd.Context, cancer: tuple[Floats, Any], penalty: float, intercept: bool) -> None:
    x, y = cancer
    n, rounds, widest = len(x), 4, 10
    model = learn.GradientLogisticRegression(
        C=penalty, fit_intercept=intercept, max_iter=rounds, max_margin=widest, degree=31
    )
    found = ctx.decrypt(model.fit(ctx.encrypt(x, max_abs=8), ctx.encrypt(y[:, None], max_abs=1)))
    # The same steps in NumPy, with the same polynomial.
    push = sd.fit(lambda t: 1 / (n * widest) * np.exp(-np.logaddexp(0, -widest * t)), (-1, 1), 31)
    w, b = np.zeros(6), 0.0
    for step in range(rounds):
        off = y / (n * widest) - (push(x @ w + b) if step else 0.5 / (n * widest))
        w, b = w * (1 - 1 / (penalty * n)) + off @ x, b + off.sum() * intercept
    assert np.abs(found.coef_[0] - widest * w).max() < 1e-4
    assert abs(found.intercept_[0] - widest * b) < 1e-4
    # And with the exact sigmoid: a fit in the clear.
    clear = learn.GradientLogisticRegression(C=penalty, fit_intercept=intercept, max_iter=rounds).fit(x, y)
    assert clear.margin_range_ < widest
    assert np.abs(found.coef_ - clear.coef_).max() < 1e-2
    assert abs(found.score(x, y) - clear.score(x, y)) <= 0.01
    assert np.allclose(found.predict_proba(x), clear.predict_proba(x), atol=2e-2)
    assert found.classes_.tolist() == [0, 1]
    assert found.n_iter_ == rounds


def test_descent_by_runs_of_rows(ctx: sd.Context, cancer: tuple[Floats, Any]) -> None:
    x, y = cancer
    table, column = ctx.encrypt(x, max_abs=8), ctx.encrypt(y[:, None], max_abs=1)
    # A ciphertext has 128 rows: a run of 128 and one of 72, then the first again.
    steps: dict[str, Any] = {"max_iter": 3, "batch_size": 128, "learning_rate": 0.5}
    found = ctx.decrypt(learn.GradientLogisticRegression(**steps, max_margin=10).fit(table, column))
    clear = learn.GradientLogisticRegression(**steps).fit(x, y)
    w, b = np.zeros(6), 0.0
    for start in (0, 128, 0):
        rows, sides = x[start : start + 128], y[start : start + 128]
        off = (sides - 1 / (1 + np.exp(-(rows @ w + b)))) * 0.5 / len(rows)
        w, b = w + off @ rows, b + off.sum()
    assert np.abs(clear.coef_[0] - w).max() < 1e-12
    assert abs(clear.intercept_[0] - b) < 1e-12
    assert clear.margin_range_ < 10
    assert np.abs(found.coef_ - clear.coef_).max() < 2e-2
    assert abs(found.intercept_[0] - clear.intercept_[0]) < 2e-2
    with pytest.raises(sd.PlanError, match="at multiples of 128"):
        learn.GradientLogisticRegression(batch_size=64).fit(table, column)
    wrong: Any
    for wrong in (0, -1, 1.5):
        with pytest.raises(sd.InputError, match="batch_size"):
            learn.GradientLogisticRegression(batch_size=wrong).fit(x, y)


def test_many_steps_go_where_scikit_learn_goes(cancer: tuple[Floats, Any]) -> None:
    """In the clear: the gradient of its objective is zero in the end."""
    x, y = cancer
    model = learn.GradientLogisticRegression(C=0.1, max_iter=4000).fit(x, y)
    chance = model.predict_proba(x)[:, 1]
    gradient = model.coef_[0] / 0.1 - (y - chance) @ x
    assert np.abs(gradient).max() < 1e-6
    assert abs((y - chance).sum()) < 1e-6


def test_power_iteration(ctx: sd.Context, cancer: tuple[Floats, Any]) -> None:
    x = cancer[0] + 0.5
    model = learn.PowerPCA(2, max_iter=6, max_variance=5).fit(ctx.encrypt(x, max_abs=8))
    with pytest.raises(AttributeError, match="are encrypted"):
        model.transform(x)
    found, clear = ctx.decrypt(model), learn.PowerPCA(2, max_iter=6).fit(x)
    assert np.abs(found.components_ - clear.components_).max() < 1e-5
    assert np.allclose(np.linalg.norm(found.components_, axis=1), 1)
    assert np.allclose(found.explained_variance_, clear.explained_variance_, rtol=1e-2)
    assert np.allclose(found.transform(x), clear.transform(x), atol=1e-4)
    exact = learn.PCA(2).fit(x)
    assert abs(found.components_[0] @ exact.components_[0]) > 0.9999
    assert abs(found.components_[1] @ exact.components_[1]) > 0.99


@pytest.mark.parametrize("k", [2, 3])
def test_clusters_of_iris(k: int) -> None:
    x, _ = classified("iris.csv")
    x = (x - 4) / 8
    ctx = sd.context(bootstrap="A", columns=4, security="insecure", threads=2)
    first = x[[0, 60, 120]][:k]
    model = learn.KMeans(k, init=first, max_iter=3, max_distance=1, least=0.2)
    found, clear = (
        ctx.decrypt(model.fit(ctx.encrypt(x, max_abs=1))),
        learn.KMeans(k, init=first, max_iter=3).fit(x),
    )
    assert found.cluster_centers_.shape == (k, 4)
    assert np.abs(found.cluster_centers_ - clear.cluster_centers_).max() < 0.01
    assert (found.predict(x) == clear.labels_).mean() >= 0.98
    assert (clear.fit_predict(x) == clear.predict(x)).all()


def test_clusters_from_rows(ctx: sd.Context) -> None:
    """Two heaps far apart, from rows of the table as first centres."""
    rng = np.random.default_rng(2)
    x = np.vstack([rng.normal(0.5, 0.05, (30, 3)), rng.normal(-0.5, 0.05, (50, 3))])
    model = learn.KMeans(2, max_iter=2, max_distance=2, least=0.3).fit(ctx.encrypt(x, max_abs=1))
    found = ctx.decrypt(model).cluster_centers_
    assert np.abs(found - [x[:30].mean(axis=0), x[30:].mean(axis=0)]).max() < 2e-3


def test_what_is_refused(ctx: sd.Context) -> None:
    x, y = np.eye(4), np.array([[0.0], [1], [0], [1]])
    table, column = ctx.encrypt(x, max_abs=1), ctx.encrypt(y, max_abs=1)
    descent = learn.GradientLogisticRegression(max_iter=2)
    with pytest.raises(sd.ShapeError, match=r"encrypted column of zeros and ones"):
        descent.fit(table, y)
    with pytest.raises(sd.ShapeError, match=r"encrypted column of zeros and ones"):
        descent.fit(table, table)
    with pytest.raises(sd.UnsupportedError, match="tables over whole ciphertexts"):
        descent.fit(sd.context(depth=1, tile=4).encrypt(x), column)
    with pytest.raises(sd.UnsupportedError, match="not fitted on an encrypted table"):
        ctx.decrypt(learn.KMeans(2).fit(x))
    with pytest.raises(sd.InputError, match="max_margin"):
        learn.GradientLogisticRegression(max_margin=0).fit(table, column)
    with pytest.raises(AttributeError, match="are encrypted"):
        learn.GradientLogisticRegression(max_iter=1).fit(table, column).predict(x)
    with pytest.raises(sd.InputError, match="n_components is from 1 to 4"):
        learn.PowerPCA(5).fit(table)
    for wrong in (
        learn.PowerPCA(max_variance=0),
        learn.PowerPCA(max_variance=np.inf),
        learn.KMeans(max_distance=np.inf),
        learn.GradientLogisticRegression(learning_rate=0),
        learn.GradientLogisticRegression(learning_rate=np.inf),
    ):
        with pytest.raises(sd.InputError, match="above zero"):
            wrong.fit(table, column)
    for clusters in (learn.KMeans(1), learn.KMeans(5), learn.KMeans(least=2), learn.KMeans(max_iter=0)):
        with pytest.raises(sd.InputError):
            clusters.fit(table)
    with pytest.raises(sd.InputError, match="within ±1"):
        learn.KMeans(2).fit(ctx.encrypt(x, max_abs=2))
    with pytest.raises(sd.ShapeError, match="init has a row for each of 2 centres"):
        learn.KMeans(2, init=np.eye(3)).fit(table)
    # Moments are those of rows and targets that were encrypted together.
    with pytest.raises(sd.UnsupportedError, match="encrypted together"):
        learn.Ridge().fit(table, column)
    # A context with levels for one step only says what lacks.
    shallow = sd.context(depth=1, columns=4, security="insecure").encrypt(x, max_abs=1)
    with pytest.raises(sd.SudareError, match=r"refresh|bootstrap"):
        learn.PowerPCA(1).fit(shallow)
