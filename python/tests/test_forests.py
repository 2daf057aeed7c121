"""Trees of scikit-learn, alone and after scalers: every decision is the library's, also at thresholds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sudare as sd
from sudare import _scalers

pytest.importorskip("sklearn")

ensemble = pytest.importorskip("sklearn.ensemble")
preprocessing = pytest.importorskip("sklearn.preprocessing")
decomposition = pytest.importorskip("sklearn.decomposition")
make_pipeline = pytest.importorskip("sklearn.pipeline").make_pipeline

WANTED: dict[str, Any] = {"insecure": 10, "error": 0.5, "agreement": 0.5}


def at_thresholds(rng: np.random.Generator, X: Any, thresholds: list[Any], count: int, ulps: int) -> Any:
    """Rows of X whose numbers are for the most part thresholds, or a few ulps beside them."""
    rows = X[rng.integers(len(X), size=count)].astype(np.float64)
    for column, of in enumerate(thresholds):
        some = rng.random(count) < 0.9
        if len(of):
            near = np.asarray(of)[rng.integers(len(of), size=some.sum())]
            rows[some, column] = near + np.spacing(near) * rng.integers(-ulps, ulps + 1, some.sum())
    return rows


def thresholds_of(model: sd.CompiledModel, features: int) -> list[Any]:
    """The thresholds that a client compares with, of each feature."""
    found: list[Any] = [[] for _ in range(features)]
    for column in model.plan.figures["columns"]:
        found[column["feature"]] += column["thresholds"]
    return found


def decided(given: Any, rows: Any) -> Any:
    """The library's own scores."""
    by = given.decision_function if hasattr(given, "classes_") else given.predict
    return np.asarray(by(rows)).reshape(len(rows), -1)


@pytest.mark.parametrize("classes", [0, 2, 4])
def test_boosted_histograms_are_the_librarys_bit_for_bit(classes: int) -> None:
    rng = np.random.default_rng(classes)
    kind = "Classifier" if classes else "Regressor"
    for seed in range(8):
        X = np.where(
            rng.random((200, 4)) < 0.5, rng.integers(-3, 4, (200, 4)) / 10, rng.normal(size=(200, 4))
        )
        targets = X @ rng.normal(size=(4, 4)) + rng.normal(size=(200, 4)) / 5
        y = targets[:, :classes].argmax(axis=1) if classes else targets[:, 0]
        about = {"max_iter": 6, "max_leaf_nodes": 5 + seed, "min_samples_leaf": 5, "random_state": seed}
        given = getattr(ensemble, f"HistGradientBoosting{kind}")(**about).fit(X, y)
        model = sd.compile(given, example=X, **WANTED)
        nodes = np.concatenate([tree.nodes for stage in given._predictors for tree in stage])
        splits = nodes[nodes["is_leaf"] == 0]
        per_feature = thresholds_of(model, 4)
        wanted = {(int(split["feature_idx"]), float(split["num_threshold"])) for split in splits}
        assert {(f, t) for f, of in enumerate(per_feature) for t in of} == wanted
        rows = at_thresholds(rng, X, per_feature, 2000, 1)
        assert np.array_equal(model.clear(rows), decided(given, rows))
        assert np.array_equal(model.plan._labels(model.clear(rows)), given.predict(rows))


def test_boosted_histograms_encrypted() -> None:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(300, 3))
    y = np.array(["no", "yes"])[(X[:, 0] + X[:, 1] ** 2 > 1).astype(int)]
    given = ensemble.HistGradientBoostingClassifier(max_iter=5, max_leaf_nodes=6).fit(X, y)
    model = sd.compile(given, example=X, insecure=10, error=1e-2, agreement=0.9)
    rows = at_thresholds(rng, X, thresholds_of(model, 3), 16, 1)
    client = sd.ModelClient(model.plan)
    server = client.server(model)
    answers = client.decrypt(server.run(client.encrypt(rows)))
    assert np.abs(answers - decided(given, rows)).max() <= model.plan.figures["error"]
    sure = np.abs(decided(given, rows)[:, 0]) > model.plan.figures["error"]
    assert (model.predict(client, server, rows) == given.predict(rows))[sure].all()
    with pytest.raises(sd.InputError, match="not finite"):
        client.encrypt([[0.0, np.nan, 0.0]])
    with pytest.raises(sd.InputError, match="not finite"):
        sd.compile(given, example=np.full((2, 3), np.nan))


def test_boosted_histograms_that_were_fitted_with_missing_and_infinite_numbers() -> None:
    """Splits between numbers and missing ones have the threshold ∞, and a split under all numbers −∞."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(300, 2))
    missing, smallest = rng.random(300) < 0.4, rng.random(300) < 0.4
    y = np.where(missing, 3.0, 0.0) + np.where(smallest, 2.0, 0.0) + X[:, 1]
    with_missing = np.where(np.stack([missing, smallest], axis=1), [np.nan, -np.inf], X)
    given = ensemble.HistGradientBoostingRegressor(max_iter=5).fit(with_missing, y)
    found = np.concatenate([stage[0].nodes["num_threshold"] for stage in given._predictors])
    assert np.isposinf(found).any()
    assert np.isneginf(found).any()
    model = sd.compile(given, example=X, **WANTED)
    assert np.array_equal(model.clear(X), decided(given, X))


def test_boosted_histograms_that_are_not_compiled() -> None:
    rng = np.random.default_rng(9)
    X, regressor = rng.integers(0, 5, (200, 2)).astype(float), ensemble.HistGradientBoostingRegressor
    y = (X[:, 0] % 2) + X[:, 1] + 1
    with pytest.raises(sd.UnsupportedError, match="get_dummies"):
        sd.compile(regressor(categorical_features=[0], max_iter=3).fit(X, y), example=X)
    for loss in ("poisson", "gamma"):
        with pytest.raises(sd.UnsupportedError, match=rf"{loss}.*np\.exp after decryption"):
            sd.compile(regressor(loss=loss, max_iter=3).fit(X, y), example=X)
    for loss in ("absolute_error", "quantile"):
        given = regressor(loss=loss, quantile=0.5, max_iter=3).fit(X, y)
        assert np.array_equal(sd.compile(given, example=X, **WANTED).clear(X), decided(given, X))
    with pytest.raises(sd.InputError, match="not fitted"):
        sd.compile(regressor(), example=X)
    given = regressor(max_iter=3).fit(X, y)
    for attribute in ("_predictors", "_baseline_prediction", "_loss", "is_categorical_"):
        there = {key: value for key, value in vars(given).items() if key != attribute}
        with pytest.raises(sd.UnsupportedError, match="other attributes"):
            sd.compile(type("HistGradientBoostingRegressor", (SimpleNamespace,), there)(**there), example=X)


def scalers(X: Any) -> list[Any]:
    """Scalers with and without each of their parts, in turn, and one that reverses the order of a column."""
    of = preprocessing
    one = [
        of.StandardScaler(),
        of.StandardScaler(with_mean=False),
        of.StandardScaler(with_std=False),
        of.MinMaxScaler((-3, 11)),
        of.MinMaxScaler(clip=True),
        of.MaxAbsScaler(),
        of.RobustScaler(),
    ]
    made = [make_pipeline(scaler).fit(X) for scaler in one]
    made.append(make_pipeline(of.StandardScaler(), of.MinMaxScaler(), of.RobustScaler()).fit(X))
    reversing = make_pipeline(of.StandardScaler(), of.MinMaxScaler()).fit(X)
    reversing[0].scale_ = reversing[0].scale_ * np.resize([-1, 1], X.shape[1])
    return [*made, reversing]


def table(rng: np.random.Generator) -> Any:
    """Columns of many sizes: a large offset, numbers far from one, whole numbers, one number."""
    columns = rng.normal(size=(400, 6))
    columns[:, 1] = 1e9 + columns[:, 1]
    columns[:, 2] *= 1e-200
    columns[:, 3] = rng.integers(0, 6, 400)
    columns[:, 4] = 7.0
    columns[:, 5] = 1e-3 * columns[:, 5] - 5
    return columns


@pytest.mark.parametrize("number", range(9))
def test_scalers_before_trees_change_no_decision(number: int) -> None:
    """Each leaf has a value of its own, so that no two ways through the trees have one score."""
    rng = np.random.default_rng(100 + number)
    X = table(rng)
    before = scalers(X)[number]
    y = rng.normal(size=len(X))
    members = [
        ensemble.ExtraTreesRegressor(4, max_depth=6, random_state=number),
        ensemble.GradientBoostingRegressor(n_estimators=4, max_depth=4, random_state=number),
        ensemble.HistGradientBoostingRegressor(max_iter=4, max_leaf_nodes=20, min_samples_leaf=3),
    ]
    for member in members:
        given = make_pipeline(*(step for _, step in before.steps), member.fit(before.transform(X), y))
        model = sd.compile(given, example=X, **WANTED)
        moved = thresholds_of(model, X.shape[1])
        # Largest numbers decide nothing.
        moved = [[t for t in of if abs(t) < 1e300] for of in moved]
        assert sum(map(len, moved)) > 20
        rows = at_thresholds(rng, X, moved, 100_000, 2)
        found, wanted = model.clear(rows)[:, 0], given.predict(rows)
        assert len(np.unique(wanted)) > 50
        differing = np.abs(found - wanted) > 1e-12 * np.abs(wanted).max()
        assert not differing.any(), (differing.sum(), rows[differing][:2])


def test_a_moved_threshold_is_the_last_double_of_its_side() -> None:
    """Also where no double, or every one, is under the scaled threshold."""
    rng = np.random.default_rng(10)
    X, largest = table(rng), np.finfo(np.float64).max
    ends = 0
    for before in scalers(X):
        steps = [step for _, step in before.steps]
        features = rng.integers(0, 6, 300)
        near = before.transform(X)[rng.integers(0, 400, 300), features]
        extreme = rng.choice([0.0, -0.0, 5e-324, 1e300, -1e300, largest, -largest], 300)
        thresholds = np.where(rng.random(300) < 0.6, near, extreme)
        for single in (False, True):
            raw, changes = _scalers.raw_thresholds(steps, features, thresholds, single, 6)
            ends += np.isneginf(raw).sum() + (raw == largest).sum()
            for x in (raw, np.nextafter(raw, largest), np.full(300, -largest), np.full(300, largest)):
                rows = np.zeros((300, 6))
                rows[np.arange(300), features] = np.clip(x, -largest, largest)
                values = _scalers.scaled(steps, rows)[np.arange(300), features]
                with np.errstate(over="ignore"):
                    below = (values.astype(np.float32) if single else values) <= thresholds
                assert np.array_equal(below, (np.clip(x, -largest, largest) <= raw) != changes)
    assert ends > 100


def test_scalers_before_labels_encrypted() -> None:
    rng = np.random.default_rng(11)
    X = table(rng)
    y = np.array([10, 20, 30])[np.digitize(X[:, 0] + X[:, 5] + 5, [-0.5, 0.5])]
    steps = preprocessing.StandardScaler(), ensemble.RandomForestClassifier(6, max_depth=4, random_state=0)
    given = make_pipeline(*steps).fit(X, y)
    model = sd.compile(given, example=X, insecure=10, error=1e-3)
    rows = at_thresholds(rng, X, thresholds_of(model, 6), 16, 1)
    client = sd.ModelClient(model.plan)
    server = client.server(model)
    answers = client.decrypt(server.run(client.encrypt(rows)))
    assert np.abs(answers - given.predict_proba(rows)).max() <= model.plan.figures["error"] <= 1e-3
    assert model.predict(client, server, rows).tolist() == given.predict(rows).tolist()


def test_steps_before_trees_that_are_not_compiled() -> None:
    rng = np.random.default_rng(12)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    for step in (decomposition.PCA(2), preprocessing.PolynomialFeatures()):
        for last in (ensemble.RandomForestClassifier(3), ensemble.GradientBoostingClassifier(n_estimators=3)):
            given = make_pipeline(preprocessing.StandardScaler(), step, last).fit(X, y)
            name = type(step).__name__
            with pytest.raises(sd.UnsupportedError, match=rf"{name} .*pipeline\[:-1\]\.transform"):
                sd.compile(given, example=X)
            # What it says works.
            model = sd.compile(given[-1], example=given[:-1].transform(X), **WANTED)
            assert np.array_equal(model.plan._labels(model.clear(given[:-1].transform(X))), given.predict(X))
    given = make_pipeline(preprocessing.StandardScaler(), ensemble.GradientBoostingClassifier(n_estimators=3))
    given.fit(X, y)
    with pytest.raises(sd.InputError, match="StandardScaler does not take"):
        sd.compile(given, example=X[:, :2])
    with pytest.raises(sd.InputError, match="gives NaN"):
        sd.compile(given, example=np.full((2, 3), np.nan))
    other = make_pipeline(given[0], ensemble.RandomForestClassifier(3).fit(np.tile(X, 2), y))
    with pytest.raises(sd.ShapeError, match="more features than the 3 columns"):
        sd.compile(other, example=X)
    for wrong in (X[:, :2], np.full((2, 3), np.nan)):
        with pytest.raises(sd.InputError, match="GradientBoostingClassifier does not take"):
            sd.compile(given[-1], example=wrong)
    given[0].scale_ = np.full(3, np.nan)
    with pytest.raises(sd.InputError, match="gives NaN"):
        sd.compile(given, example=X)
