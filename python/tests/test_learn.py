"""Estimators that fit on encrypted tables: their promises on real data, and what they refuse."""

from __future__ import annotations

import importlib
import importlib.util
import io
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sudare as sd
from conftest import Floats
from sudare import learn
from sudare.learn._base import finite

Fit = tuple[learn.Client, learn.Rows, Floats, Any]


def data(name: str) -> Floats:
    """A file of data inside the scikit-learn package, which is not imported."""
    package = importlib.util.find_spec("sklearn")
    assert package is not None
    assert package.origin is not None
    path = Path(package.origin).parent / "datasets" / "data" / name
    csv = name.endswith(".csv")
    found = np.loadtxt(path, delimiter="," if csv else None, skiprows=int(csv))
    return found.astype(np.float64)


def bounds(x: Floats) -> Floats:
    """What such a column can be, in two digits."""
    most: Floats = np.ceil(1.1 * np.abs(x).max(axis=0) * 100) / 100
    return most


def classified(name: str, columns: Any = slice(None)) -> tuple[Floats, Any]:
    """Rows and labels of a set."""
    table = data(name)
    return table[:, :-1][:, columns], table[:, -1].astype(int)


def encrypted(estimator: Any, x: Floats, y: Any, **release: Any) -> Fit:
    """The rows of an owner, and what a server computes with."""
    if estimator._kind == "regressor":
        plan = estimator.plan(x.shape, max_abs=bounds(x), target_max_abs=bounds(np.asarray(y)), **release)
    elif estimator._kind == "classifier":
        plan = estimator.plan(x.shape, max_abs=bounds(x), classes=np.unique(y), **release)
    else:
        plan = estimator.plan(x.shape, max_abs=bounds(x), **release)
    client = learn.Client(plan, threads=2)
    client.server()
    return client, client.encrypt(x, y), x, y


@pytest.fixture(scope="module")
def diabetes() -> Fit:
    """442 patients, ten measurements, and the progress of the disease."""
    return encrypted(learn.Ridge(), data("diabetes_data_raw.csv.gz"), data("diabetes_target.csv.gz"))


@pytest.fixture(scope="module")
def wine() -> Fit:
    """178 wines of three growers, a table for each."""
    return encrypted(learn.GaussianNB(), *classified("wine_data.csv"))


@pytest.fixture(scope="module")
def wine_in_common() -> Fit:
    """The same in one table."""
    return encrypted(learn.LinearDiscriminantAnalysis(), *classified("wine_data.csv"))


def fitted(estimator: Any, fit: Fit) -> tuple[Any, Any]:
    """An estimator that was fitted on encrypted rows, and one that was in the clear."""
    client, rows, x, y = fit
    there = client.decrypt(type(estimator)(**estimator.get_params()).fit(rows))
    transforms = estimator._kind == "transformer"
    return there, type(estimator)(**estimator.get_params()).fit(x, None if transforms else y)


@pytest.mark.parametrize(
    "estimator",
    [
        learn.LinearRegression(),
        learn.LinearRegression(fit_intercept=False),
        learn.Ridge(alpha=3.0),
        learn.Lasso(alpha=0.5, tol=1e-10, max_iter=20000),
        learn.ElasticNet(alpha=0.5, tol=1e-10, max_iter=20000),
    ],
    ids=repr,
)
def test_regressions_keep_their_promise(estimator: Any, diabetes: Fit) -> None:
    found, clear = fitted(estimator, diabetes)
    assert (np.abs(found.coef_ - clear.coef_) <= found.coef_error_).all()
    assert (found.coef_error_ < 0.2).all()
    assert abs(found.intercept_ - clear.intercept_) <= found.intercept_error_ + clear.intercept_error_
    # The bound is a worst case; noise is far below it.
    assert np.allclose(found.coef_, clear.coef_, atol=1e-5)
    x, y = diabetes[2:]
    assert abs(found.score(x, y) - clear.score(x, y)) < 1e-6
    assert found.predict(x).shape == y.shape


def test_axes_of_the_same_rows(diabetes: Fit, wine: Fit, wine_in_common: Fit) -> None:
    for fit in (diabetes, wine, wine_in_common):
        x = fit[2]
        found, clear = fitted(learn.StandardScaler(), fit)
        assert (np.abs(found.mean_ - x.mean(axis=0)) <= found.mean_error_ + 1e-12).all()
        assert (np.abs(found.var_ - x.var(axis=0)) <= found.var_error_ + 1e-9).all()
        assert np.allclose(found.inverse_transform(found.transform(x)), x)
        found, clear = fitted(learn.PCA(n_components=2), fit)
        off = np.abs(found.explained_variance_ - clear.explained_variance_)
        assert (off <= found.explained_variance_error_).all()
        assert (
            np.linalg.norm(found.components_ - clear.components_, axis=1) <= found.components_error_
        ).all()
        assert (found.components_error_ < 1e-2).all()
        assert found.transform(x).shape == (len(x), 2)
    assert learn.PCA(n_components=0.999).fit(diabetes[2]).n_components_ < 10


@pytest.mark.parametrize(
    "estimator",
    [learn.GaussianNB(), learn.QuadraticDiscriminantAnalysis(), learn.LogisticRegression()],
    ids=repr,
)
def test_classes_with_a_covariance_each(estimator: Any, wine: Fit) -> None:
    found, clear = fitted(estimator, wine)
    x, y = wine[2:]
    assert (found.predict(x) == clear.predict(x)).all()
    assert found.score(x, y) > 0.97
    assert np.allclose(found.predict_proba(x), clear.predict_proba(x), atol=1e-3)
    assert np.allclose(found.predict_proba(x).sum(axis=1), 1)
    assert found.classes_.tolist() == [0, 1, 2]
    if isinstance(found, learn.GaussianNB):
        assert (np.abs(found.theta_ - clear.theta_) <= found.theta_error_ + 1e-9).all()
        assert (np.abs(found.var_ - clear.var_) <= found.var_error_ + 1e-9).all()
        assert found.class_count_.tolist() == np.bincount(y).tolist()
    if isinstance(found, learn.QuadraticDiscriminantAnalysis):
        for covariance, exact, error in zip(
            found.covariance_, clear.covariance_, found.covariance_error_, strict=True
        ):
            assert (np.abs(covariance - exact) <= error + 1e-9).all()


def test_classes_with_a_covariance_in_common(wine_in_common: Fit) -> None:
    x = wine_in_common[2]
    found, clear = fitted(learn.LinearDiscriminantAnalysis(), wine_in_common)
    assert (np.abs(found.coef_ - clear.coef_) <= found.coef_error_ + clear.coef_error_).all()
    assert (found.coef_error_ < 1e-3).all()
    assert (found.predict(x) == clear.predict(x)).all()
    assert np.allclose(np.abs(found.transform(x)), np.abs(clear.transform(x)), atol=1e-4)
    found, clear = fitted(learn.NearestCentroid(), wine_in_common)
    assert (np.abs(found.centroids_ - clear.centroids_) <= found.centroids_error_ + 1e-9).all()
    assert (found.predict(x) == clear.predict(x)).all()
    # Who needs each class's covariance is not served by one for all.
    client, rows = wine_in_common[:2]
    with pytest.raises(sd.PlanError, match=r"needs the covariance of each class"):
        learn.GaussianNB().fit(rows)
    with pytest.raises(sd.InputError, match=r"needs the covariance of each class"):
        learn.QuadraticDiscriminantAnalysis().fit(client.decrypt(rows.moments()))


def test_two_classes_of_thirty_measurements() -> None:
    x, y = classified("breast_cancer.csv")
    fit = encrypted(learn.LogisticRegression(), x, y)
    for estimator in (learn.LogisticRegression(C=10.0), learn.LinearDiscriminantAnalysis()):
        found, clear = fitted(estimator, fit)
        assert found.coef_.shape == (1, 30)
        assert np.allclose(found.decision_function(x), clear.decision_function(x), atol=1e-2)
        assert found.score(x, y) > 0.94


def test_ten_digits() -> None:
    package = importlib.util.find_spec("sklearn")
    assert package is not None
    assert package.origin is not None
    digits = np.loadtxt(Path(package.origin).parent / "datasets/data/digits.csv.gz", delimiter=",")
    x, y = digits[:, :64], digits[:, 64].astype(int)
    # Pixels have 0 to 16, and some are the same in all rows.
    plan = learn.LinearDiscriminantAnalysis().plan(x.shape, max_abs=16, classes=range(10))
    client = learn.Client(plan, threads=2)
    client.server()
    rows = client.encrypt(x, y)
    for estimator in (learn.LinearDiscriminantAnalysis(), learn.NearestCentroid()):
        found, clear = fitted(estimator, (client, rows, x, y))
        assert (found.predict(x) == clear.predict(x)).mean() > 0.999
        assert found.score(x, y) > 0.9


def test_logistic_regression_is_the_least_of_its_objective() -> None:
    """Gradients by differences, of the loss on many rows from the classes' distributions, are zero."""
    rng = np.random.default_rng(3)
    first, second = rng.normal(0, 1, (200_000, 2)) * [1, 2], rng.normal(0, 1.5, (200_000, 2))
    x = np.vstack([first, second + np.array([1, -2])])
    y = np.repeat([0, 1], 200_000)
    model = learn.LogisticRegression(C=1e-4).fit(x, y)

    def loss(w: Floats) -> float:
        margin = (x @ w[:2] + w[2]) * (2 * y - 1)
        return float(np.logaddexp(0, -margin).mean() + w[:2] @ w[:2] / (2e-4 * len(x)))

    w = np.append(model.coef_[0], model.intercept_)
    steps = 1e-4 * np.eye(3)
    slope = np.array([(loss(w + s) - loss(w - s)) / 2e-4 for s in steps])
    assert np.abs(slope).max() < 2e-3
    assert np.abs(loss(np.zeros(3)) - loss(w)) > 0.1


def test_several_targets() -> None:
    x, y = (
        data("diabetes_data_raw.csv.gz")[:60, :4],
        data("diabetes_target.csv.gz")[:60],
    )
    two = np.column_stack([y, x[:, 0] + 0.5 * y])
    found, clear = fitted(learn.LinearRegression(), encrypted(learn.LinearRegression(), x, two))
    assert found.coef_.shape == (2, 4)
    assert found.intercept_.shape == (2,)
    assert (np.abs(found.coef_ - clear.coef_) <= found.coef_error_).all()
    assert np.allclose(found.predict(x), clear.predict(x), atol=1e-3)


def test_two_machines(wine: Fit) -> None:
    """The owner's plan, rows and the answer travel as bytes, and the server has no secret."""
    client, rows, x, _ = wine
    plan = learn.Plan.from_json(client.plan.to_json())
    assert plan == client.plan
    of_a_plan: Any = sd.Client
    assert isinstance(of_a_plan(plan), learn.Client)
    client.plan.save(file := io.BytesIO())
    assert sd.load(file.getvalue()) == plan
    server = sd.Server.from_bytes(plan.product, client.server().to_bytes())
    there = learn.GaussianNB().fit(learn.Rows.from_bytes(plan, rows.to_bytes(), server))
    answer = learn.Answer.from_bytes(plan, io.BytesIO(there.answer_.to_bytes()))
    again = learn.Client.from_secret_bytes(plan, client.secret_bytes(), threads=2)
    found = learn.GaussianNB().fit(again.decrypt(answer))
    assert (found.predict(x) == learn.GaussianNB().fit(x, wine[3]).predict(x)).all()
    # An estimator with an answer still encrypted tells so.
    with pytest.raises(ValueError, match=r"are encrypted; their owner reads them"):
        there.predict(x)
    with pytest.raises(sd.UnsupportedError):
        pickle.dumps(client)
    assert all("secret" not in repr(part) or "hidden" in repr(part) for part in (client, rows, answer, plan))
    # What is cut short, or has something after it, is refused.
    whole = there.answer_.to_bytes()
    for broken in (whole[:-9], whole + b"\0", whole[: len(whole) // 3 + 40], b"", b"nonsense"):
        with pytest.raises(sd.FormatError):
            learn.Answer.from_bytes(plan, broken)
    with pytest.raises(sd.KeyMismatchError):
        learn.Client(plan).decrypt(answer)


@pytest.mark.parametrize("each", [True, False])
def test_load_reads_what_save_wrote(each: bool, tmp_path: Path) -> None:
    """`sudare.load` reads all files of a fit, of rows that are encrypted once or with their classes."""
    x = np.random.default_rng(43).normal(size=(30, 3))
    y = (x.sum(axis=1) > 0).astype(int)
    estimator: Any = learn.GaussianNB() if each else learn.LinearDiscriminantAnalysis()
    client = learn.Client(estimator.plan(x.shape, max_abs=5, classes=[0, 1]))
    things = {"plan": client.plan, "key": client, "public": client.public(), "keys": client.server()}
    for name, thing in things.items():
        thing.save(tmp_path / name)
    plan = sd.load(tmp_path / "plan")
    server, public = sd.load(tmp_path / "keys", plan), sd.load(tmp_path / "public", plan)
    public.encrypt(x, y).save(tmp_path / "rows")
    sd.load(tmp_path / "rows", plan).bind(server).moments().save(tmp_path / "answer")
    again = sd.load(tmp_path / "key", plan)
    assert isinstance(again, learn.Client)
    assert isinstance(public, learn.PublicClient)
    found = estimator.fit(again.decrypt(sd.load(tmp_path / "answer", again)))
    assert (found.predict(x) == estimator.fit(x, y).predict(x)).all()


def test_hospitals_add_up(diabetes: Fit) -> None:
    x, y = diabetes[2:]
    halves = [encrypted(learn.Ridge(), x[part], y[part]) for part in (slice(0, 200), slice(200, None))]
    moments = [client.decrypt(rows.moments()) for client, rows, _, _ in halves]
    found, clear = learn.Ridge().fit(moments[0] + moments[1]), learn.Ridge().fit(x, y)
    assert (np.abs(found.coef_ - clear.coef_) <= found.coef_error_).all()
    # And moments of any table, whose last column is the target.
    named = sd.Moments(
        442,
        *(
            getattr(moments[0] + moments[1], f)
            for f in ("mean", "covariance", "mean_error", "covariance_error")
        ),
    )
    assert np.array_equal(learn.Ridge().fit(named).coef_, found.coef_)


def test_others_encrypt_for_the_owner(wine: Fit) -> None:
    """A hospital that has a public key alone; the promise holds for its rows too."""
    client, _, x, y = wine
    public = learn.PublicClient(client.plan, client.public().to_bytes(), threads=2)
    rows = learn.Rows.from_bytes(client.plan, public.encrypt(x, y).to_bytes(), client.server())
    found, clear = client.decrypt(learn.GaussianNB().fit(rows)), learn.GaussianNB().fit(x, y)
    assert (np.abs(found.theta_ - clear.theta_) <= found.theta_error_ + 1e-9).all()
    assert (np.abs(found.var_ - clear.var_) <= found.var_error_ + 1e-9).all()
    assert public.plan == client.plan
    with pytest.raises(sd.InputError, match="none of the planned classes"):
        public.encrypt(x, y + 1)
    # The owner sees the moments, of its own rows and of others', and they add up.
    mine, theirs = (client.decrypt(part.moments()) for part in (client.encrypt(x, y), rows))
    both = {label: mine[label] + theirs[label] for label in mine}
    assert (learn.GaussianNB().fit(both).predict(x) == clear.predict(x)).all()


def test_release(diabetes: Fit) -> None:
    x, y = diabetes[2:]
    client, rows, _, _ = encrypted(learn.Ridge(), x, y, release=sd.Release(2))
    model = learn.Ridge().fit(rows)
    with pytest.raises(sd.ReleaseError, match=r"release=True .* private=True"):
        client.decrypt(model)
    found, clear = client.decrypt(model, release=True), learn.Ridge().fit(x, y)
    assert client.releases_left == 1
    assert (np.abs(found.coef_ - clear.coef_) <= found.coef_error_).all()


def test_what_is_refused(diabetes: Fit, wine: Fit) -> None:
    client, rows, x, y = diabetes
    with pytest.raises(sd.PlanError, match="plan of a regressor, and GaussianNB is a classifier"):
        learn.GaussianNB().fit(rows)
    with pytest.raises(sd.InputError, match="leave y out"):
        learn.Ridge().fit(rows, y)
    with pytest.raises(sd.InputError, match="target_max_abs"):
        learn.Ridge().plan(x.shape, max_abs=300)
    with pytest.raises(sd.InputError, match=r"a regressor needs target_max_abs=, the largest \|y\|"):
        learn.LinearRegression().plan(x.shape, max_abs=300)
    with pytest.raises(sd.InputError, match=r"a classifier has no target_max_abs, .*leave it out"):
        learn.GaussianNB().plan(x.shape, max_abs=300, target_max_abs=1, classes=[0, 1])
    with pytest.raises(sd.InputError, match="a classifier needs classes=, the labels"):
        learn.GaussianNB().plan(x.shape, max_abs=300)
    with pytest.raises(sd.InputError, match=r"a regressor has no classes, .*leave them out"):
        learn.Ridge().plan(x.shape, max_abs=300, target_max_abs=1, classes=[0, 1])
    for classes in ([1], [1, 1], [1, "a"], [None, 2]):
        with pytest.raises(sd.InputError, match="classes are"):
            learn.GaussianNB().plan(x.shape, max_abs=300, classes=classes)
    with pytest.raises(sd.ShapeError, match="max_abs is one number or 10"):
        learn.Ridge().plan(x.shape, max_abs=[1, 2], target_max_abs=1)
    with pytest.raises(sd.ShapeError, match="the plan has"):
        client.encrypt(x[:5], y[:5])
    with pytest.raises(sd.InputError, match=r"at \(0, 0\) is over its bound"):
        client.encrypt(10 * x, y)
    with pytest.raises(sd.InputError, match="a target is over its bound"):
        client.encrypt(x, 10 * y)
    with pytest.raises(sd.InputError, match="none of the planned classes"):
        wine[0].encrypt(wine[2], np.where(wine[3] == 0, 7, wine[3]))
    with pytest.raises(sd.InputError, match="no row has the label 0"):
        wine[0].encrypt(wine[2], np.maximum(wine[3], 1))
    with pytest.raises(sd.UnsupportedError, match="encrypted together"):
        learn.Ridge().fit(rows.parts[0])
    with pytest.raises(sd.UnsupportedError, match="was not fitted on encrypted rows"):
        client.decrypt(learn.Ridge().fit(x, y))
    for estimator in (learn.Ridge(-1.0), learn.ElasticNet(l1_ratio=2.0), learn.PCA(11), learn.PCA("all")):  # type: ignore[arg-type]
        with pytest.raises(sd.InputError):
            estimator.fit(x, y)
    for text in ("", "{}", '{"sudare": "learning"}', "[]"):
        with pytest.raises(sd.FormatError):
            learn.Plan.from_json(text)
    says = client.plan.to_json()
    for old, new in (
        ('"common": true', '"common": 3'),
        ('"classes": []', '"classes": 1'),
        ('"classes": []', '"classes": [0, 1]'),
        ('"vector": true', '"vector": 1'),
        ('"targets": [', '"targets": [1.0, '),
        ('"max_abs": [', '"max_abs": [1.0, '),
        ('"max_abs": [', '"max_abs": ["1", '),
    ):
        assert old in says
        with pytest.raises(sd.FormatError):
            learn.Plan.from_json(says.replace(old, new, 1))


def test_messages_say_where_a_word_stands_and_not_which() -> None:
    rows = np.array([[1.0, 2.0], [3.0, "Smith"]], dtype=object)
    with pytest.raises(sd.InputError, match=r"the element at \(1, 1\) is not a number") as refused:
        finite(rows, "X")
    assert "Smith" not in str(refused.value)


def test_what_an_earlier_fit_left_predicts_nothing(diabetes: Fit) -> None:
    """Neither after a fit on encrypted rows; the error is caught by both names."""
    client, rows, x, y = diabetes
    model = learn.Ridge().fit(x, y)
    with pytest.raises(learn.NotFittedError, match="are encrypted"):
        model.fit(rows).predict(x)
    assert not hasattr(model, "coef_")
    theirs = pytest.importorskip("sklearn.exceptions", exc_type=ImportError).NotFittedError
    for caught in (theirs, learn.NotFittedError, sd.SudareError):
        with pytest.raises(caught) as found:
            model.predict(x)
    assert type(pickle.loads(pickle.dumps(found.value))) is learn.NotFittedError
    assert client.decrypt(model).score(x, y) > 0.5


def test_targets_are_known_by_their_names(diabetes: Fit) -> None:
    x, y = diabetes[2:]
    moments = diabetes[0].decrypt(diabetes[1].moments())
    shuffled = moments[[*moments.columns[::-1]]]
    assert np.allclose(learn.Ridge().fit(shuffled).coef_[::-1], learn.Ridge().fit(moments).coef_)
    # One coefficient for each feature is not enough for two targets.
    client, rows, _, _ = encrypted(learn.Ridge(), x, np.column_stack([y, x[:, 0]]))
    two = client.decrypt(rows.moments())
    with pytest.raises(sd.InputError, match="takes one target, and these moments have 2"):
        learn.Lasso().fit(two)
    one = learn.Lasso(0.5).fit(two[[*two.columns[:11]]])
    assert np.allclose(one.coef_, learn.Lasso(0.5).fit(moments).coef_, atol=1e-4)


def test_numbers_that_would_give_wrong_answers(diabetes: Fit, wine: Fit) -> None:
    x, y = diabetes[2:]
    masked = np.ma.masked_greater(x, 200)
    with pytest.raises(sd.InputError, match="masked"):
        learn.Ridge().fit(masked, y)
    with pytest.raises(sd.InputError, match="masked"):
        diabetes[0].encrypt(masked, y)
    with pytest.raises(sd.InputError, match="masked"):
        learn.Ridge().fit(x, np.ma.masked_greater(y, 200))
    with pytest.raises(sd.InputError, match="masked"):
        learn.GaussianNB().fit(wine[2], np.ma.masked_equal(wine[3], 0))
    with pytest.raises(sd.InputError, match=r"none of the planned classes \[0, 1, 2\]"):
        wine[0].encrypt(wine[2], wine[3].astype(str))
    for model in (learn.Lasso(tol=np.nan), learn.Lasso(max_iter=2.5)):  # type: ignore[arg-type]
        with pytest.raises(sd.InputError, match=r"tol|max_iter"):
            model.fit(x, y)
    for kind, wrong in (
        (learn.GaussianNB, {"var_smoothing": -1.0}),
        (learn.GaussianNB, {"var_smoothing": np.nan}),
        (learn.LinearDiscriminantAnalysis, {"n_components": 1.5}),
        (learn.LogisticRegression, {"tol": np.nan}),
    ):
        with pytest.raises(sd.InputError, match=next(iter(wrong))):
            kind().set_params(**wrong).fit(*wine[2:])
    says = wine[0].plan.to_json()
    assert '"classes": [\n  0,' in says
    with pytest.raises(sd.FormatError):
        learn.Plan.from_json(says.replace('"classes": [\n  0,', '"classes": [\n  1,', 1))


def test_columns_that_say_nothing(diabetes: Fit) -> None:
    """A column that is constant, or follows from others, has no coefficient of its own, and no bound."""
    x = diabetes[2].copy()
    x[:, 3] = 7.0
    found, clear = fitted(learn.LinearRegression(), encrypted(learn.LinearRegression(), x, diabetes[3]))
    assert found.rank_ == clear.rank_ == 9
    assert abs(found.coef_[3]) < 1e-9
    assert np.isinf(found.coef_error_).all()
    assert np.allclose(found.coef_, clear.coef_, atol=1e-4)


def test_names_of_columns(diabetes: Fit) -> None:
    pandas = pytest.importorskip("pandas")
    x, y = diabetes[2:]
    frame = pandas.DataFrame(x, columns=[f"c{j}" for j in range(10)])
    client = learn.Client.from_secret_bytes(diabetes[0].plan, diabetes[0].secret_bytes())
    client.encrypt(frame, y)
    model = client.decrypt(learn.Ridge().fit(diabetes[1]))
    assert model.feature_names_in_.tolist() == list(frame.columns)
    assert np.allclose(model.predict(frame), learn.Ridge().fit(frame, y).predict(frame), atol=1e-3)
    with pytest.raises(sd.ShapeError, match="Feature names unseen at fit time"):
        model.predict(frame.rename(columns={"c1": "other"}))


def test_frames_have_the_columns_of_the_first(diabetes: Fit) -> None:
    """A frame with two columns swapped is refused where it is encrypted, by others who encrypt too."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.ones((5, 2)), columns=["age", "height"])
    swapped = frame[["height", "age"]]
    of_frame = learn.StandardScaler().plan(frame)
    assert of_frame.shape == (5, 2)
    assert of_frame.error == of_frame.product.error
    assert of_frame.memory == of_frame.product.summary["memory"] > 0
    assert of_frame.seconds == of_frame.product.summary["seconds"]
    assert "coef_error_" in str(of_frame)
    assert "height" not in of_frame.to_json()
    assert [spec.shape for spec in sd.table(frame).inputs.values()] == [(5, 2)]
    of_shape = learn.Plan.from_json(of_frame.to_json())
    for plan in (of_frame, of_shape):
        client = learn.Client(plan)
        client.encrypt(frame)
        client.encrypt(frame.to_numpy())
        public = learn.PublicClient(plan, client.public().to_bytes())
        public.encrypt(frame)
        for use in (client.encrypt, public.encrypt):
            with pytest.raises(sd.ShapeError, match="same order as they were in fit"):
                use(swapped)
    with pytest.raises(sd.ShapeError, match="Feature names"):
        learn.Client(of_frame).encrypt(swapped)


def test_scikit_learn_is_not_loaded() -> None:
    code = "import sys, sudare; sudare.learn.Ridge(); sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
