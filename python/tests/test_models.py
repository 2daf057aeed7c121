"""Trained models on encrypted inputs, from Python."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import sudare as sd
from sudare import _estimators, _models


def compiled(
    rng: np.random.Generator, function: str = "tanh", **wanted: Any
) -> tuple[sd.CompiledModel, np.ndarray]:
    examples = rng.uniform(-1, 1, (60, 6))
    layers = [
        sd.Dense(rng.normal(size=(6, 8)) / 3, rng.normal(size=8) / 5, function),
        sd.Dense(rng.normal(size=(8, 3)) / 3, rng.normal(size=3)),
    ]
    wanted = {"error": 1e-3, "agreement": 0.9, "insecure": 9, "batch": 8, **wanted}
    return sd.compile(layers, example=examples, **wanted), examples


def test_three_lines() -> None:
    model, examples = compiled(np.random.default_rng(1))
    client: Any = sd.Client
    client = client(model.plan)
    assert isinstance(client, sd.ModelClient)
    server = client.server(model)
    answers = client.decrypt(server.run(client.encrypt(examples[:20])))
    figures = model.plan.figures
    assert figures["images"] == 8
    assert np.abs(answers - model.polynomial(examples[:20])).max() <= figures["error"] <= 1e-3
    near = np.abs(model.polynomial(examples) - model.clear(examples)).max()
    assert near == pytest.approx(figures["approximation"]["largest"])
    labels = model.predict(client, server, examples)
    assert (labels == model.clear(examples).argmax(axis=1)).mean() >= 0.9
    for words in ("approximation", "noise", "agreement", "NO SECURITY"):
        assert words in str(model)


def test_load_reads_what_save_wrote(tmp_path: Path) -> None:
    """`sudare.load` reads the files of a model as it reads others, each with what it belongs to."""
    model, examples = compiled(np.random.default_rng(20), "square")
    client = sd.ModelClient(model.plan)
    things = {"model": model, "plan": model.plan, "secret": client, "keys": client.server(model)}
    for name, thing in things.items():
        thing.save(tmp_path / name)
    stored, plan = sd.load(tmp_path / "model"), sd.load(tmp_path / "plan")
    assert stored.plan.hash == plan.hash == model.plan.hash
    server, owner = sd.load(tmp_path / "keys", stored), sd.load(tmp_path / "secret", plan)
    assert owner.key_id == client.key_id
    client.encrypt(examples[:5]).save(tmp_path / "request")
    server.run(sd.load(tmp_path / "request", server)).save(tmp_path / "answer")
    found = owner.decrypt(sd.load(tmp_path / "answer", owner))
    assert np.abs(found - model.polynomial(examples[:5])).max() < 1e-3
    with open(tmp_path / "model", "rb") as file:
        assert sd.load(file).plan.hash == plan.hash
    with pytest.raises(sd.PlanError, match="with its weights"):
        sd.load(tmp_path / "keys", plan)
    with pytest.raises(sd.PlanError, match="reads requests"):
        sd.load(tmp_path / "request", plan)
    # Weights are known by their digest, which the plan has.
    with pytest.raises(sd.KeyMismatchError):
        sd.load((tmp_path / "model").read_bytes()[:-1])


def test_what_is_no_request_is_named() -> None:
    model, examples = compiled(np.random.default_rng(21), "square")
    client = sd.ModelClient(model.plan)
    server = client.server(model)
    with pytest.raises(sd.UnsupportedError, match=r"client.encrypt\(inputs\) gives .* this is ndarray"):
        server.run(examples)  # type: ignore[arg-type]
    with pytest.raises(sd.UnsupportedError, match=r"server.run\(request\) gives .* this is ModelRequest"):
        client.decrypt(client.encrypt(examples[:1]))  # type: ignore[arg-type]


def test_everything_travels(tmp_path: Path) -> None:
    model, examples = compiled(np.random.default_rng(2), "square")
    model.save(tmp_path / "model")
    model.plan.save(tmp_path / "plan")
    plan = sd.ModelPlan.load(tmp_path / "plan")
    assert plan.hash == model.plan.hash
    client = sd.ModelClient(plan)
    client.save(tmp_path / "secret")
    again = sd.ModelClient.from_secret_bytes(plan, tmp_path / "secret")
    assert again.key_id == client.key_id
    keys = client.server(model).to_bytes()
    stored = sd.CompiledModel.from_bytes(tmp_path / "model")
    server = sd.ModelServer.from_bytes(stored, keys, threads=1, stored=False)
    request = sd.ModelRequest.from_bytes(plan, client.encrypt(examples[:5]).to_bytes())
    answer = sd.ModelAnswer.from_bytes(plan, server.run(request).to_bytes())
    assert len(answer) == 5
    found = again.decrypt(answer)
    assert np.abs(found - model.polynomial(examples[:5])).max() <= plan.figures["error"]


def test_refusals(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    model, examples = compiled(rng)
    other, _ = compiled(rng)
    client = sd.ModelClient(model.plan)
    server = client.server(model)
    with pytest.raises(sd.KeyMismatchError, match="another plan"):
        client.server(other)
    with pytest.raises(sd.KeyMismatchError):
        server.run(sd.ModelClient(other.plan).encrypt(examples[:1]))
    with pytest.raises(sd.InputError, match="number 2 is over"):
        client.encrypt(np.where(np.arange(6) == 2, 9.0, 0.1))
    with pytest.raises(sd.ShapeError):
        client.encrypt(examples[:, :5])
    with pytest.raises(sd.InputError, match="not finite"):
        client.encrypt(np.full((1, 6), np.nan))
    with pytest.raises(sd.PlanError, match="agreement"):
        compiled(rng, agreement=1.5)
    with pytest.raises(sd.UnsupportedError, match="maximum"):
        sd.compile([sd.Dense(np.eye(6), function="maximum")], example=examples)
    with pytest.raises(sd.FormatError):
        sd.compile(b"no network", example=examples)
    with pytest.raises(sd.FormatError):
        sd.CompiledModel.from_bytes(b"SUDMODL1")
    text = json.dumps({**model.plan.figures, "images": 3})
    with pytest.raises(sd.FormatError, match="contradicts"):
        sd.ModelPlan.from_json(text)


def test_refreshed_and_apart() -> None:
    """A deep network by a bootstrapping set, and a large batch with a ciphertext for each number."""
    rng = np.random.default_rng(6)
    examples = rng.uniform(-1, 1, (300, 5))
    sizes = (5, 6, 6, 6, 2)
    layers = [
        sd.Dense(rng.normal(size=(a, b)) / np.sqrt(a), function="tanh" if b != sizes[-1] else "identity")
        for a, b in itertools.pairwise(sizes)
    ]
    model = sd.compile(layers, example=examples, degree=7, bootstrap="B", insecure=9)
    figures = model.plan.figures
    assert figures["bootstrap"] == "B"
    assert figures["refreshes"] >= 2
    assert "refreshed before it" in str(model)
    assert model.plan.seconds > 0
    assert model.plan.error == figures["error"]
    assert model.plan.memory > model.plan.key_bytes
    client = sd.ModelClient(model.plan)
    server = sd.ModelServer.from_bytes(model, client.server(model).to_bytes())
    answers = client.decrypt(server.run(client.encrypt(examples[:2])))
    assert np.abs(answers - model.polynomial(examples[:2])).max() <= figures["error"]
    with pytest.raises(sd.PlanError, match="bootstrapping set"):
        sd.compile(layers, example=examples, bootstrap="Z")

    model = sd.compile(layers[:1], example=examples, degree=7, batch=300, insecure=9)
    assert model.plan.figures["apart"]
    client = sd.ModelClient(model.plan)
    answers = client.decrypt(client.server(model).run(client.encrypt(examples)))
    assert np.abs(answers - model.polynomial(examples)).max() <= model.plan.figures["error"]


def named(name: str, **attributes: Any) -> Any:
    """An object as scikit-learn leaves it after a fit: what is read is its attributes."""
    return type(name, (SimpleNamespace,), {})(**attributes)


def test_estimators_by_their_attributes() -> None:
    rng = np.random.default_rng(4)
    examples = rng.normal(3, 2, (80, 5))
    mean, scale = examples.mean(axis=0), examples.std(axis=0)
    scaler = named("StandardScaler", n_features_in_=5, mean_=mean, scale_=scale, with_mean=True)
    scaled = (examples - mean) / scale
    weights = rng.normal(size=(1, 5))
    logistic = named(
        "LogisticRegression", coef_=weights, intercept_=np.array([0.2]), classes_=np.array(["no", "yes"])
    )
    pipeline = SimpleNamespace(steps=[("scale", scaler), ("classify", logistic)])
    model = sd.compile(pipeline, example=examples, insecure=9, error=1e-4)
    assert model.plan.figures["params"]["q_bits"][1:] == model.plan.figures["params"]["q_bits"][1:2]
    wanted = scaled @ weights[0] + 0.2
    assert np.allclose(model.clear(examples)[:, 0], wanted)
    client = sd.ModelClient(model.plan)
    assert (
        model.predict(client, client.server(model), examples).tolist()
        == np.where(wanted > 0, "yes", "no").tolist()
    )

    linear = named("LinearRegression", coef_=weights[0], intercept_=0.5)
    model = sd.compile(linear, example=examples, insecure=9, error=1e-3)
    client = sd.ModelClient(model.plan)
    found = model.predict(client, client.server(model), examples[:7])
    assert found.shape == (7,)
    assert np.allclose(found, examples[:7] @ weights[0] + 0.5, atol=1e-3)

    coefs = [rng.normal(size=(5, 9)) / 3, rng.normal(size=(9, 4)) / 3]
    biases = [rng.normal(size=9) / 3, rng.normal(size=4) / 3]
    network = named(
        "MLPClassifier",
        coefs_=coefs,
        intercepts_=biases,
        activation="relu",
        out_activation_="softmax",
        classes_=np.arange(10, 14),
        _label_binarizer=object(),
    )
    pipeline = SimpleNamespace(steps=[("scale", scaler), ("net", network)])
    model = sd.compile(pipeline, example=examples, insecure=10, batch=4, agreement=0.95)
    clear = np.maximum(scaled @ coefs[0] + biases[0], 0) @ coefs[1] + biases[1]
    assert np.allclose(model.clear(examples), clear)
    client = sd.ModelClient(model.plan)
    labels = model.predict(client, client.server(model), examples)
    assert (labels == 10 + clear.argmax(axis=1)).mean() >= 0.93

    forest = named("RandomForestClassifier", estimators_=[], classes_=np.arange(2))
    with pytest.raises(sd.UnsupportedError, match="RandomForestClassifier is not compiled"):
        sd.compile(forest, example=examples)
    with pytest.raises(sd.InputError, match="not fitted"):
        sd.compile(named("Ridge", alpha=1.0), example=examples)


def grown(rng: np.random.Generator, features: int, leaf: Any, depth: int) -> Any:
    """A random tree's arrays, as scikit-learn's `tree_` has them."""
    nodes: list[list[Any]] = []

    def grow(left_steps: int) -> int:
        at = len(nodes)
        nodes.append([-2, -2.0, -1, -1, leaf()])
        if left_steps and rng.random() < 0.85:
            nodes[at][0] = int(rng.integers(features))
            nodes[at][1] = float(rng.integers(-4, 5)) / 4
            nodes[at][2], nodes[at][3] = grow(left_steps - 1), grow(left_steps - 1)
        return at

    grow(depth)
    columns = [np.array(column) for column in zip(*nodes, strict=True)]
    names = ("feature", "threshold", "children_left", "children_right", "value")
    return named("Tree", **dict(zip(names, columns, strict=True)))


def walked(tree: Any, row: np.ndarray) -> np.ndarray:
    """The leaf that a row reaches."""
    at = 0
    while tree.children_left[at] >= 0:
        goes = np.float32(row[tree.feature[at]]) <= tree.threshold[at]
        at = (tree.children_left if goes else tree.children_right)[at]
    leaf: np.ndarray = tree.value[at]
    return leaf


def test_forests_by_their_attributes(tmp_path: Path) -> None:
    rng = np.random.default_rng(28)
    # Half of the numbers are thresholds.
    rows = np.where(rng.random((40, 3)) < 0.5, rng.integers(-4, 5, (40, 3)) / 4, rng.normal(size=(40, 3)))

    trees = [grown(rng, 3, lambda: rng.integers(1, 9, (1, 3)).astype(float), 4) for _ in range(5)]
    members = [named("DecisionTreeClassifier", tree_=tree) for tree in trees]
    classes = np.array(["a", "b", "c"])
    forest = named("RandomForestClassifier", estimators_=members, classes_=classes, n_outputs_=1)
    shares = np.array(
        [np.mean([walked(t, row)[0] / walked(t, row)[0].sum() for t in trees], axis=0) for row in rows]
    )
    model = sd.compile(forest, example=rows, insecure=9, error=1e-3)
    assert np.allclose(model.clear(rows), shares)
    assert np.array_equal(model.polynomial(rows), model.clear(rows))
    client = sd.ModelClient(model.plan)
    server = client.server(model)
    assert model.predict(client, server, rows).tolist() == classes[shares.argmax(axis=1)].tolist()
    answers = client.decrypt(server.run(client.encrypt(rows)))
    assert np.abs(answers - shares).max() <= model.plan.figures["error"] <= 1e-3
    assert "decisions are exact" in str(model)

    # Files: what a server and a client have of it.
    model.save(tmp_path / "forest")
    model.plan.save(tmp_path / "plan")
    read = sd.CompiledModel.from_bytes(tmp_path / "forest")
    plan = sd.ModelPlan.load(tmp_path / "plan")
    assert read.plan.hash == plan.hash == model.plan.hash
    assert plan.seconds > 0
    assert plan.memory > plan.key_bytes
    owner = sd.ModelClient(plan)
    service = sd.ModelServer.from_bytes(read, owner.server(model).to_bytes())
    request = sd.ModelRequest.from_bytes(plan, owner.encrypt(rows[:2]).to_bytes())
    answer = sd.ModelAnswer.from_bytes(plan, service.run(request).to_bytes())
    assert np.abs(owner.decrypt(answer) - shares[:2]).max() <= 1e-3
    with pytest.raises(sd.InputError, match="not finite"):
        client.encrypt([[0.0, np.nan, 0.0]])
    network = sd.compile([sd.Dense(np.ones((3, 1)))], example=rows, insecure=9)
    with pytest.raises(sd.KeyMismatchError):
        sd.ModelClient(network.plan).server(model)
    with pytest.raises(sd.KeyMismatchError):
        client.decrypt(_foreign(network, rows))

    single = named("DecisionTreeRegressor", tree_=grown(rng, 3, lambda: rng.normal(5, 2, (2, 1)), 3))
    model = sd.compile(SimpleNamespace(steps=[("tree", single)]), example=rows, insecure=9)
    wanted = np.array([walked(single.tree_, row)[:, 0] for row in rows])
    client = sd.ModelClient(model.plan)
    assert np.abs(model.predict(client, client.server(model), rows) - wanted).max() <= 1e-2


def _foreign(network: Any, rows: np.ndarray) -> Any:
    client = sd.ModelClient(network.plan)
    return client.server(network).run(client.encrypt(rows))


def test_gradient_boosting_by_its_attributes() -> None:
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(12, 2))
    stages = [
        [named("DecisionTreeRegressor", tree_=grown(rng, 2, lambda: rng.normal(size=(1, 1)), 3))]
        for _ in range(6)
    ]

    def raw(inputs: np.ndarray) -> np.ndarray:
        return np.array([0.4 + 0.1 * sum(walked(s[0].tree_, row)[0, 0] for s in stages) for row in inputs])

    about = {"estimators_": np.array(stages, dtype=object), "learning_rate": 0.1}
    boosted = named("GradientBoostingClassifier", classes_=np.array([3, 7]), decision_function=raw, **about)
    model = sd.compile(boosted, example=rows, insecure=9, error=1e-4)
    assert np.allclose(model.clear(rows)[:, 0], raw(rows))
    client = sd.ModelClient(model.plan)
    assert (
        model.predict(client, client.server(model), rows).tolist() == np.where(raw(rows) > 0, 7, 3).tolist()
    )

    regressor = named("GradientBoostingRegressor", predict=raw, **about)
    model = sd.compile(regressor, example=rows, insecure=9, error=1e-4)
    client = sd.ModelClient(model.plan)
    assert np.abs(model.predict(client, client.server(model), rows) - raw(rows)).max() <= 1e-4
    other = named("GradientBoostingRegressor", predict=lambda x: raw(x) + x[:, 0], **about)
    with pytest.raises(sd.UnsupportedError, match="begins with another estimator"):
        sd.compile(other, example=rows, insecure=9)


def xgboost_document(objective: str = "binary:logistic", booster: str = "gbtree") -> dict[str, Any]:
    """Two trees as XGBoost writes them: a step at 0.5, with a node that pruning left behind, and a leaf."""
    step = {
        "left_children": [2, -1, -1, -1],
        "right_children": [3, -1, -1, -1],
        "split_indices": [1, 0, 0, 0],
        "split_conditions": [0.5, 0.0, -1.25, 2.0],
        "split_type": [0, 0, 0, 0],
        "tree_param": {"size_leaf_vector": "1"},
    }
    leaf = {key: value[2:3] for key, value in step.items() if isinstance(value, list)}
    model = {"trees": [step, {**leaf, "tree_param": {}}], "tree_info": [0, 0]}
    return {
        "learner": {
            "objective": {"name": objective},
            "gradient_booster": {"name": booster, "model": model},
            "learner_model_param": {"base_score": "[7.5E-1]", "num_class": "0", "num_target": "1"},
        }
    }


def lightgbm_document(**about: Any) -> dict[str, Any]:
    """Two trees of three classes, of which one has a step at 0.1 that single precision does not hold."""
    split = {"decision_type": "<=", "missing_type": "None", "split_feature": 0, "threshold": 0.1, **about}
    step = {**split, "left_child": {"leaf_value": 3.0}, "right_child": {"leaf_value": -1.0}}
    trees = [step, {"leaf_value": 0.5}, {"leaf_value": 1.0}]
    return {
        "objective": "multiclass num_class:3",
        "num_tree_per_iteration": 3,
        "tree_info": [{"tree_structure": tree} for tree in trees],
    }


def test_boosters_by_their_documents(tmp_path: Path) -> None:
    # At a threshold XGBoost goes right, and LightGBM left.
    rows = np.array([[0.0, 0.5], [0.0, np.nextafter(np.float32(0.5), np.float32(0))], [9.0, -3.0]])
    (tmp_path / "model.json").write_text(json.dumps(xgboost_document()))
    model = sd.compile(tmp_path / "model.json", example=rows, insecure=9, error=1e-3)
    margins = np.log(3) - 1.25 + np.array([2.0, -1.25, -1.25])
    assert np.allclose(model.clear(rows)[:, 0], margins)
    client = sd.ModelClient(model.plan)
    assert model.predict(client, client.server(model), rows).tolist() == [1, 0, 0]

    rows = np.array([[0.1], [np.nextafter(0.1, 1)], [-5.0]])
    booster = named("LGBMClassifier", classes_=np.array(["a", "b", "c"]))
    booster.booster_ = named("Booster", dump_model=lightgbm_document)
    model = sd.compile(booster, example=rows, insecure=9)
    assert model.clear(rows).tolist() == [[3, 0.5, 1], [-1, 0.5, 1], [3, 0.5, 1]]
    client = sd.ModelClient(model.plan)
    assert model.predict(client, client.server(model), rows).tolist() == ["a", "c", "a"]

    for document, what in [
        (xgboost_document("count:poisson"), "objective"),
        (xgboost_document("reg:gamma"), "objective"),
        (xgboost_document("reg:tweedie"), "objective"),
        (xgboost_document("reg:logistic"), "objective"),
        (xgboost_document(booster="dart"), "booster"),
        (lightgbm_document(decision_type="=="), "categories"),
        (lightgbm_document(missing_type="Zero"), "missing"),
    ]:
        with pytest.raises(sd.UnsupportedError, match=what):
            sd.compile(json.dumps(document).encode(), example=rows)
    circle = xgboost_document()
    circle["learner"]["gradient_booster"]["model"]["trees"][0]["left_children"][2] = 0
    for text in [b"{", b'{"x": 1}', b'{"learner": {}}', json.dumps(circle).encode(), b"{" + b'"a":[' * 10**5]:
        with pytest.raises(sd.FormatError):
            sd.compile(text, example=rows)


def test_ensembles_that_are_not_compiled() -> None:
    rng = np.random.default_rng(6)
    tree = named("DecisionTreeClassifier", tree_=grown(rng, 2, lambda: np.ones((1, 2)), 2))
    rows = rng.normal(size=(5, 2))
    forest = named("RandomForestClassifier", estimators_=[tree], classes_=np.arange(2))
    with pytest.raises(sd.UnsupportedError, match=r"PCA .* transform before encryption"):
        sd.compile(SimpleNamespace(steps=[("components", named("PCA")), ("forest", forest)]), example=rows)
    with pytest.raises(sd.UnsupportedError, match="AdaBoost"):
        sd.compile(named("AdaBoostClassifier", estimators_=[tree], classes_=np.arange(2)), example=rows)
    several = named("RandomForestClassifier", estimators_=[tree], classes_=[np.arange(2), np.arange(2)])
    with pytest.raises(sd.UnsupportedError, match="each label"):
        sd.compile(several, example=rows)
    with pytest.raises(sd.PlanError, match="leave bootstrap out"):
        sd.compile(forest, example=rows, bootstrap="A")


def test_scikit_learn_itself() -> None:
    pytest.importorskip("scipy")
    linear_model = pytest.importorskip("sklearn.linear_model")
    datasets = pytest.importorskip("sklearn.datasets")
    neural = pytest.importorskip("sklearn.neural_network")
    decomposition = pytest.importorskip("sklearn.decomposition")
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    make = pytest.importorskip("sklearn.pipeline").make_pipeline
    cancer, digits = datasets.load_breast_cancer(), datasets.load_digits()
    scaler = preprocessing.StandardScaler
    cases: list[tuple[Any, Any]] = [
        (make(scaler(), linear_model.LogisticRegression()), cancer),
        (make(scaler(), decomposition.PCA(20), linear_model.LogisticRegression()), digits),
        (
            make(preprocessing.MinMaxScaler(), neural.MLPClassifier((24,), max_iter=2000, random_state=0)),
            digits,
        ),
    ]
    for pipeline, data in cases:
        pipeline.fit(data.data[:400], data.target[:400])
        model = sd.compile(pipeline, example=data.data[:400], insecure=10, batch=8)
        client = sd.ModelClient(model.plan)
        found = model.predict(client, client.server(model), data.data[400:500])
        assert (found == pipeline.predict(data.data[400:500])).mean() >= 0.97


def test_generalised_linear_models_of_scikit_learn_itself() -> None:
    """Their answers are the exponentials of linear predictors, where the link is the logarithm."""
    pytest.importorskip("scipy")
    linear_model = pytest.importorskip("sklearn.linear_model")
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    make = pytest.importorskip("sklearn.pipeline").make_pipeline
    rng = np.random.default_rng(40)
    X = rng.normal(size=(80, 4))
    means = np.exp(X @ [0.3, 0.2, 0, -0.4] - 0.5)
    counts, sizes = rng.poisson(means), rng.gamma(2, means)
    cases: list[tuple[Any, Any]] = [
        (linear_model.PoissonRegressor(), counts),
        (make(preprocessing.StandardScaler(), linear_model.GammaRegressor()), sizes),
        (linear_model.TweedieRegressor(power=1.5), counts),
        (linear_model.TweedieRegressor(power=0), sizes),
        (linear_model.TweedieRegressor(power=0, link="log"), sizes),
    ]
    for estimator, y in cases:
        estimator.fit(X, y)
        model = sd.compile(estimator, example=X, insecure=9, error=1e-2)
        assert np.allclose(model.clear(X)[:, 0], estimator.predict(X))
        client = sd.ModelClient(model.plan)
        found = model.predict(client, client.server(model), X[:9])
        assert np.abs(found - estimator.predict(X[:9])).max() <= 2e-2, estimator


def test_an_estimator_that_does_more_than_was_read_is_refused() -> None:
    rng = np.random.default_rng(41)
    X = rng.normal(1, 1, (30, 3))

    def estimator(**methods: Any) -> Any:
        about: dict[str, Any] = {"coef_": np.array([1.0, -2, 0.5]), "intercept_": 0.25, "fit": None}
        return named("LinearOfSomebody", **{**about, **methods})

    scores = X @ [1, -2, 0.5] + 0.25
    two = {"classes_": np.array(["a", "b"])}
    right = [
        estimator(predict=lambda x: x @ [1, -2, 0.5] + 0.25),
        estimator(decision_function=lambda x: x @ [1, -2, 0.5] + 0.25, **two),
        estimator(predict=lambda x: np.where(scores > 0, "b", "a"), **two),
    ]
    for given in right:
        assert np.allclose(sd.compile(given, example=X, insecure=9).clear(X)[:, 0], scores)
    wrong = [
        estimator(predict=lambda x: np.exp(x @ [1, -2, 0.5] + 0.25)),
        estimator(predict=lambda x: np.stack([scores, scores], axis=1)),
        estimator(decision_function=lambda x: x @ [1, -2, 0.5] + 0.26, **two),
        estimator(predict=lambda x: np.where(scores > 0.5, "b", "a"), **two),
        estimator(predict=lambda x: np.where(scores > 0, "b", "c"), **two),
    ]
    for given in wrong:
        with pytest.raises(sd.UnsupportedError, match=r"LinearOfSomebody.* answers the examples otherwise"):
            sd.compile(given, example=X, insecure=9)

    cross = pytest.importorskip("sklearn.cross_decomposition")
    with pytest.raises(sd.UnsupportedError, match=r"PLSRegression\.predict"):
        sd.compile(cross.PLSRegression(2).fit(X, scores), example=X, insecure=9)


def test_columns_of_frames_have_the_names_of_the_fit() -> None:
    """A frame whose columns have another order is refused, and not scored as if nothing were wrong."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    rng = np.random.default_rng(42)
    frame = pandas.DataFrame(rng.normal(size=(40, 3)), columns=["age", "height", "weight"])
    swapped, renamed = frame[["height", "age", "weight"]], frame.rename(columns={"age": "years"})
    of_frame = named("Ridge", coef_=np.ones(3), intercept_=0.0, feature_names_in_=np.array(frame.columns))
    layers = [sd.Dense(np.ones((3, 1)))]
    for given, example in [(of_frame, frame), (of_frame, frame.to_numpy()), (layers, frame)]:
        model = sd.compile(given, example=example, insecure=9)
        client = sd.ModelClient(model.plan)
        for rows in (frame, frame.to_numpy(), polars.from_pandas(frame)):
            assert len(client.encrypt(rows[:2])) == 2
        for use in (client.encrypt, model.clear, model.polynomial):
            with pytest.raises(sd.ShapeError, match="same order as they were in fit"):
                use(swapped)
        with pytest.raises(sd.ShapeError, match="unseen at fit time:\n- years"):
            client.encrypt(renamed)
    with pytest.raises(sd.ShapeError, match="same order"):
        sd.compile(of_frame, example=swapped, insecure=9)
    # Names do not travel, and are given again.
    travelled = sd.ModelPlan.from_json(model.plan.to_json())
    assert len(sd.ModelClient(travelled).encrypt(swapped)) == 40
    again = sd.ModelClient(travelled.named(frame.columns))
    assert len(again.encrypt(frame)) == 40
    with pytest.raises(sd.ShapeError, match="same order"):
        again.encrypt(swapped)
    with pytest.raises(sd.ShapeError, match="3 numbers, and there are 2 names"):
        travelled.named(["age", "height"])
    with pytest.raises(sd.ShapeError, match="0 classes"):
        travelled.named(classes=["a", "b"])
    binary = named(
        "LogisticRegression", coef_=np.ones((1, 3)), intercept_=[0.0], classes_=np.array(["n", "y"])
    )
    model = sd.compile(binary, example=frame, insecure=9)
    read = sd.CompiledModel.from_bytes(model.to_bytes())
    plan = read.plan.named(classes=["n", "y"])
    assert plan._labels(read.clear(frame)).tolist() == model.plan._labels(read.clear(frame)).tolist()
    with pytest.raises(sd.ShapeError, match="2 classes"):
        read.plan.named(classes=["a", "b", "c"])
    mixed = pandas.DataFrame({"age": [1], "smokes": [True], "height": [1.5]})
    with pytest.raises(sd.InputError, match=r"frame\.iloc\[\[0\]\]"):
        client.encrypt(mixed.iloc[0])


def test_preparations_that_are_not_compiled() -> None:
    pandas = pytest.importorskip("pandas")
    texts = pandas.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]})
    linear = named("Ridge", coef_=np.ones(2), intercept_=0.0)
    for step in ("ColumnTransformer", "OneHotEncoder"):
        pipeline = SimpleNamespace(steps=[("prepare", named(step)), ("fit", linear)])
        with pytest.raises(sd.UnsupportedError, match=rf"{step}: .*get_dummies"):
            sd.compile(pipeline, example=texts)
    clipped = named("MinMaxScaler", clip=True)
    with pytest.raises(sd.UnsupportedError, match="clip=False"):
        sd.compile(SimpleNamespace(steps=[("s", clipped), ("f", linear)]), example=np.ones((3, 2)))


def test_forests_of_scikit_learn_itself() -> None:
    pytest.importorskip("scipy")
    ensemble = pytest.importorskip("sklearn.ensemble")
    trees = pytest.importorskip("sklearn.tree")
    datasets = pytest.importorskip("sklearn.datasets")
    cancer, digits = datasets.load_breast_cancer(), datasets.load_digits()
    diabetes = datasets.load_diabetes()
    cases: list[tuple[Any, Any]] = [
        (trees.DecisionTreeClassifier(max_depth=4, random_state=0), digits),
        (ensemble.RandomForestClassifier(10, max_depth=5, random_state=0), cancer),
        (ensemble.ExtraTreesClassifier(8, max_depth=4, random_state=0), digits),
        (ensemble.GradientBoostingClassifier(n_estimators=10, random_state=0), cancer),
        (ensemble.GradientBoostingClassifier(n_estimators=3, max_depth=2, random_state=0), digits),
        (ensemble.RandomForestRegressor(5, max_depth=4, random_state=0), diabetes),
        (ensemble.GradientBoostingRegressor(n_estimators=10, random_state=0), diabetes),
    ]
    for estimator, data in cases:
        estimator.fit(data.data[:300], data.target[:300])
        rows = data.data[300:310]
        model = sd.compile(estimator, example=data.data[:300], insecure=10, error=0.5)
        client = sd.ModelClient(model.plan)
        found, wanted = model.predict(client, client.server(model), rows), estimator.predict(rows)
        if hasattr(estimator, "classes_"):
            assert found.tolist() == wanted.tolist(), estimator
        else:
            assert np.abs(found - wanted).max() <= model.plan.figures["error"], estimator


class Random:
    """A network in the making: nodes, constants, and values that can be taken up again."""

    def __init__(self, rng: np.random.Generator, onnx: Any) -> None:
        self.rng, self.onnx, self.helper = rng, onnx, onnx.helper
        # Before opset 14 the evaluator normalises by statistics of the batch.
        self.opset = int(rng.choice([15, 17, 20]))
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.shape = (1, *(int(x) for x in rng.integers(1, 4, 1)), *(int(x) for x in rng.integers(4, 8, 2)))
        self.input, self.name, self.functions = self.shape, "x", 0
        self.kept: list[tuple[str, tuple[int, ...]]] = []

    def constant(self, values: Any, dtype: Any = np.float32) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(values, dtype=dtype), name))
        return name

    def add(self, operator: str, inputs: list[str], **attributes: Any) -> None:
        name = f"v{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(operator, [self.name, *inputs], [name], **attributes))
        self.name = name

    def weights(self, *shape: int) -> np.ndarray:
        return np.asarray(self.rng.normal(size=shape) / np.sqrt(np.prod(shape[1:], dtype=np.float64)))

    def window(self, most: int) -> dict[str, Any]:
        """A window that fits: kernel, strides, pads, maybe dilations."""
        sizes = self.shape[2:]
        kernel = [int(self.rng.integers(1, min(most, size) + 1)) for size in sizes]
        pads = [int(self.rng.integers(0, k)) for k in kernel * 2]
        return {"kernel_shape": kernel, "strides": [int(s) for s in self.rng.integers(1, 3, 2)], "pads": pads}

    def step(self) -> None:
        rng, channels = self.rng, self.shape[1]
        match rng.integers(10):
            case 0 | 1:
                group = channels if rng.random() < 0.3 else 1
                features = group * int(rng.integers(1, 3))
                window = self.window(3)
                if rng.random() < 0.3 and all(s >= 5 for s in self.shape[2:]):
                    window["dilations"] = [2, 1]
                if rng.random() < 0.3:
                    window.pop("pads")
                    window["auto_pad"] = str(rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"]))
                w = self.weights(features, channels // group, *window["kernel_shape"])
                self.add(
                    "Conv", [self.constant(w), self.constant(self.weights(features))], group=group, **window
                )
            case 2:
                window = self.window(3)
                window.update(ceil_mode=int(rng.integers(2)), count_include_pad=int(rng.integers(2)))
                if window["ceil_mode"]:
                    # No window begins beyond the input.
                    window["pads"] = [0] * 4
                    window["strides"] = [
                        min(s, k) for s, k in zip(window["strides"], window["kernel_shape"], strict=True)
                    ]
                self.add("AveragePool", [], **window)
            case 3:
                numbers = [self.weights(channels) for _ in range(3)]
                variance = rng.uniform(0.5, 2, channels)
                self.add("BatchNormalization", [self.constant(n) for n in (*numbers, variance)])
            case 4 if self.functions < 2:
                self.functions += 1
                self.add(
                    str(rng.choice(["Relu", "Sigmoid", "Tanh", "Softplus", "LeakyRelu", "HardSigmoid"])), []
                )
            case 5:
                shape = [1, channels, 1, 1] if rng.random() < 0.5 else [self.shape[3]]
                self.add(
                    str(rng.choice(["Add", "Sub", "Mul", "Div"])), [self.constant(rng.uniform(0.5, 2, shape))]
                )
            case 6:
                pads = [
                    0,
                    0,
                    *(int(p) for p in rng.integers(0, 2, 2)),
                    0,
                    0,
                    *(int(p) for p in rng.integers(0, 2, 2)),
                ]
                mode = str(rng.choice(["constant", "edge"]))
                self.add(
                    "Pad",
                    [self.constant(pads, np.int64), *([self.constant(0.5)] if mode == "constant" else [])],
                    mode=mode,
                )
            case 7 if min(self.shape[2:]) > 2:
                ends = self.constant([2**62, -1], np.int64)
                axes, steps = (
                    self.constant([2, 3], np.int64),
                    self.constant([int(rng.integers(1, 3)), 1], np.int64),
                )
                self.add("Slice", [self.constant([int(rng.integers(0, 2)), 0], np.int64), ends, axes, steps])
            case 8:
                self.add("Transpose", [], perm=[0, 1, 3, 2])
            case _:
                same = [k for k, shape in self.kept if shape == self.shape]
                if same:
                    operator = str(rng.choice(["Add", "Concat"]))
                    self.add(
                        operator, [str(rng.choice(same))], **({"axis": 1} if operator == "Concat" else {})
                    )
        self.infer()

    def infer(self) -> None:
        """The shape of the value, by ONNX's own inference."""
        if self.nodes:
            found = self.onnx.shape_inference.infer_shapes(self.model(), data_prop=True).graph.output[0]
            self.shape = tuple(d.dim_value for d in found.type.tensor_type.shape.dim)
        self.kept.append((self.name, self.shape))

    def model(self) -> Any:
        info = self.helper.make_tensor_value_info
        x, y = info("x", 1, self.input), info(self.name, 1, None)
        graph = self.helper.make_graph(self.nodes, "random", [x], [y], self.constants)
        return self.helper.make_model(
            graph, opset_imports=[self.helper.make_opsetid("", self.opset)], ir_version=8
        )


def test_random_networks_agree_with_the_reference_evaluator() -> None:
    """Every stride, padding, dilation and group; branches, norms, concatenation; fifty of them encrypted."""
    onnx = pytest.importorskip("onnx")
    reference = pytest.importorskip("onnx.reference")
    pytest.importorskip("onnx.shape_inference")
    rng = np.random.default_rng(28)
    encrypted = 0
    for case in range(500):
        network = Random(rng, onnx)
        network.infer()
        for _ in range(int(rng.integers(2, 8))):
            network.step()
            if np.prod(network.shape) > 400:
                break
        network.add("Flatten", [])
        size = int(np.prod(network.shape))
        network.add(
            "Gemm",
            [network.constant(network.weights(3, size)), network.constant(network.weights(3))],
            transB=1,
        )
        file = network.model()
        examples = rng.uniform(-1, 1, (4, *network.input)).astype(np.float32)
        evaluator = reference.ReferenceEvaluator(file)
        wanted = np.array([evaluator.run(None, {"x": x})[0][0] for x in examples])
        model = sd.compile(file, example=examples, degree=7, error=10.0, insecure=11)
        found = model.clear(examples)
        assert np.allclose(found, wanted, rtol=1e-4, atol=1e-4), (
            f"case {case}: {[n.op_type for n in network.nodes]}"
        )
        if case % 10 == 0:
            encrypted += 1
            client = sd.ModelClient(model.plan)
            answers = client.decrypt(client.server(model).run(client.encrypt(examples)))
            assert np.abs(answers - model.polynomial(examples)).max() <= model.plan.figures["error"]
    assert encrypted == 50


def test_names_that_lightgbm_changed() -> None:
    """A space is _ there: the order is compared all the same."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a x": [1.0], "b": [2.0]})
    model = SimpleNamespace(booster_=None, feature_name_=["a_x", "b"])
    assert _models._features(model, frame) == ["a x", "b"]
    with pytest.raises(sd.ShapeError, match="same order"):
        _models._features(model, frame[["b", "a x"]])
    model.feature_name_ = ["Column_0", "Column_1"]
    assert _models._features(model, frame[["b", "a x"]]) == ["b", "a x"]


def test_several_labels_of_a_row_are_no_class() -> None:
    """Their scores are those of a classifier whose label is the largest one's place."""
    rows = np.eye(3)
    model = SimpleNamespace(decision_function=lambda x: x, predict=lambda x: (x > 0).astype(int))
    with pytest.raises(sd.UnsupportedError, match="decision_function answers"):
        _estimators.require_same_answers(model, rows, rows, "argmax", np.arange(3))
    model.predict = lambda x: x.argmax(axis=1)
    _estimators.require_same_answers(model, rows, rows, "argmax", np.arange(3))


def test_one_text_is_no_list_of_names() -> None:
    """Its letters would be names."""
    model, _ = compiled(np.random.default_rng(3), "square")
    with pytest.raises(sd.InputError, match="list of texts"):
        model.plan.named("abcdef")
