"""Estimators of `sudare.learn` beside scikit-learn's own: its checks, its results, its tools."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sudare import learn

pytest.importorskip("scipy")
# Discriminant analyses count degrees of freedom otherwise before.
pytest.importorskip("sklearn", minversion="1.9")

base = pytest.importorskip("sklearn.base")
datasets = pytest.importorskip("sklearn.datasets")
decomposition = pytest.importorskip("sklearn.decomposition")
discriminant_analysis = pytest.importorskip("sklearn.discriminant_analysis")
linear_model = pytest.importorskip("sklearn.linear_model")
model_selection = pytest.importorskip("sklearn.model_selection")
naive_bayes = pytest.importorskip("sklearn.naive_bayes")
neighbors = pytest.importorskip("sklearn.neighbors")
pipeline = pytest.importorskip("sklearn.pipeline")
preprocessing = pytest.importorskip("sklearn.preprocessing")
estimator_checks = pytest.importorskip("sklearn.utils.estimator_checks")

ALL = [getattr(learn, name) for name in learn.__all__ if hasattr(getattr(learn, name), "get_params")]
TIGHT = {"tol": 1e-10, "max_iter": 100_000}
PAIRS: list[tuple[Any, Any]] = [
    (learn.LinearRegression(), linear_model.LinearRegression()),
    (learn.LinearRegression(fit_intercept=False), linear_model.LinearRegression(fit_intercept=False)),
    (learn.Ridge(0.3), linear_model.Ridge(0.3)),
    (learn.Lasso(0.3, **TIGHT), linear_model.Lasso(0.3, **TIGHT)),  # type: ignore[arg-type]
    (
        learn.ElasticNet(0.3, l1_ratio=0.2, **TIGHT),  # type: ignore[arg-type]
        linear_model.ElasticNet(0.3, l1_ratio=0.2, **TIGHT),
    ),
]
CLASSIFIERS: list[tuple[Any, Any]] = [
    (learn.NearestCentroid(), neighbors.NearestCentroid()),
    (learn.GaussianNB(), naive_bayes.GaussianNB()),
    (learn.LinearDiscriminantAnalysis(), discriminant_analysis.LinearDiscriminantAnalysis()),
    (
        learn.QuadraticDiscriminantAnalysis(reg_param=0.01),
        discriminant_analysis.QuadraticDiscriminantAnalysis(reg_param=0.01),
    ),
]


@pytest.mark.parametrize("kind", ALL, ids=lambda k: str(k.__name__))
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_own_checks(kind: Any) -> None:
    """All of them pass; the one that is skipped, for arrays of other libraries, has to be asked for."""
    results = estimator_checks.check_estimator(kind(), on_fail=None, on_skip=None)
    failed = [(r["check_name"], r["exception"]) for r in results if r["status"] == "failed"]
    assert not failed
    assert sum(r["status"] == "passed" for r in results) >= 40


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=repr)
def test_regressions(ours: Any, theirs: Any) -> None:
    x, y = datasets.load_diabetes(return_X_y=True, scaled=False)
    ours, theirs = ours.fit(x, y), theirs.fit(x, y)
    assert np.allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-8)
    assert np.isclose(ours.intercept_, theirs.intercept_)
    assert np.isclose(ours.score(x, y), theirs.score(x, y))
    several = np.column_stack([y, x[:, 0]])
    if ours._several:
        assert np.allclose(ours.fit(x, several).predict(x), theirs.fit(x, several).predict(x))
        assert np.isclose(ours.score(x, several), theirs.score(x, several))


@pytest.mark.parametrize("load", ["iris", "wine", "breast_cancer", "digits"])
@pytest.mark.parametrize(("ours", "theirs"), CLASSIFIERS, ids=repr)
def test_classifiers(load: str, ours: Any, theirs: Any) -> None:
    x, y = getattr(datasets, f"load_{load}")(return_X_y=True)
    x = preprocessing.StandardScaler().fit_transform(x)
    x = decomposition.PCA(10).fit_transform(x) if load == "digits" else x
    ours, theirs = ours.fit(x, y), theirs.fit(x, y)
    assert (ours.predict(x) == theirs.predict(x)).all()
    if hasattr(ours, "predict_proba"):
        assert np.allclose(ours.predict_proba(x), theirs.predict_proba(x), atol=1e-8)
    if hasattr(ours, "transform"):
        assert np.allclose(np.abs(ours.transform(x)), np.abs(theirs.transform(x)))
        assert np.allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_)
        assert np.allclose(ours.coef_, theirs.coef_)
    text = y.astype(str)
    assert (ours.fit(x, text).predict(x) == theirs.fit(x, text).predict(x)).all()


@pytest.mark.parametrize("k", [None, 3, 0.8])
@pytest.mark.parametrize("whiten", [False, True])
def test_components(k: Any, whiten: bool) -> None:
    x = datasets.load_wine().data
    ours, theirs = learn.PCA(k, whiten=whiten).fit(x), decomposition.PCA(k, whiten=whiten).fit(x)
    assert np.allclose(ours.transform(x), theirs.transform(x), atol=1e-6)
    assert np.allclose(
        ours.inverse_transform(ours.transform(x)), theirs.inverse_transform(theirs.transform(x))
    )
    for name in ("explained_variance_ratio_", "singular_values_", "noise_variance_", "n_components_"):
        assert np.allclose(getattr(ours, name), getattr(theirs, name)), name
    scaled = learn.StandardScaler().fit(x)
    assert np.allclose(scaled.transform(x), preprocessing.StandardScaler().fit_transform(x))


@pytest.mark.parametrize(
    ("load", "share"), [("iris", 0.96), ("wine", 0.99), ("breast_cancer", 0.98), ("digits", 0.95)]
)
def test_logistic_regression_from_moments(load: str, share: float) -> None:
    """Not scikit-learn's minimum, for moments are not rows, but its labels for nearly all of them."""
    x, y = getattr(datasets, f"load_{load}")(return_X_y=True)
    x = preprocessing.StandardScaler().fit_transform(x)
    x = decomposition.PCA(20).fit_transform(x) if load == "digits" else x
    ours, theirs = (
        learn.LogisticRegression().fit(x, y),
        linear_model.LogisticRegression(max_iter=5000).fit(x, y),
    )
    assert (ours.predict(x) == theirs.predict(x)).mean() >= share
    assert ours.score(x, y) > theirs.score(x, y) - 0.03


def test_scikit_learns_tools() -> None:
    x, y = datasets.load_diabetes(return_X_y=True)
    copy = base.clone(learn.Ridge(alpha=2.5))
    assert copy.get_params() == {"alpha": 2.5, "fit_intercept": True}
    assert repr(copy) == "Ridge(alpha=2.5)"
    assert base.is_regressor(copy)
    search = model_selection.GridSearchCV(learn.Ridge(), {"alpha": [0.01, 1.0]}).fit(x, y)
    assert search.best_params_ == {"alpha": 0.01}
    steps = pipeline.make_pipeline(learn.StandardScaler(), learn.PCA(5), learn.LinearRegression()).fit(x, y)
    assert steps.score(x, y) > 0.4
