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
    """Every stride, padding, dilation and group; branches, norms, concatenation; ten of them encrypted."""
    onnx = pytest.importorskip("onnx")
    reference = pytest.importorskip("onnx.reference")
    pytest.importorskip("onnx.shape_inference")
    rng = np.random.default_rng(28)
    encrypted = 0
    for case in range(120):
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
        if case % 12 == 0:
            encrypted += 1
            client = sd.ModelClient(model.plan)
            answers = client.decrypt(client.server(model).run(client.encrypt(examples)))
            assert np.abs(answers - model.polynomial(examples)).max() <= model.plan.figures["error"]
    assert encrypted == 10
