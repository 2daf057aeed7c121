"""Ten models of other libraries, none changed for this one: each in three lines, each beside its own library.

`make test-frameworks` installs the libraries. What is not installed is skipped.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sudare as sd
from sudare import _torch


def sklearn(name: str) -> Any:
    return pytest.importorskip(f"sklearn.{name}")


def rows_of(name: str) -> Any:
    """A table of scikit-learn's: examples to fit and calibrate by, and a few others."""
    data = getattr(sklearn("datasets"), f"load_{name}")()
    mixed = np.random.default_rng(28).permutation(len(data.data))
    X, y = data.data[mixed], data.target[mixed]
    return X[:-12], y[:-12], X[-12:]


def pipeline(*steps: Any) -> Any:
    return sklearn("pipeline").make_pipeline(*steps)


def scaler() -> Any:
    return sklearn("preprocessing").StandardScaler()


def test_a_logistic_regression_in_a_pipeline() -> None:
    X, y, rows = rows_of("breast_cancer")
    given = pipeline(scaler(), sklearn("linear_model").LogisticRegression()).fit(X, y)

    model = sd.compile(given, example=X)
    client = sd.ModelClient(model.plan)
    labels = model.predict(client, client.server(model), rows)

    assert labels.tolist() == given.predict(rows).tolist()


def converted(given: Any, X: Any) -> tuple[bytes, Any]:
    """The ONNX file of a fitted estimator, and its labels by onnxruntime."""
    runtime = pytest.importorskip("onnxruntime")
    converter = pytest.importorskip("skl2onnx")
    file: bytes = converter.to_onnx(given, X[:1].astype(np.float32)).SerializeToString()
    session = runtime.InferenceSession(file, providers=["CPUExecutionProvider"])
    return file, lambda rows: session.run(None, {"X": rows.astype(np.float32)})[0]


def test_a_pipeline_with_pca_through_skl2onnx() -> None:
    X, y, rows = rows_of("digits")
    steps = (scaler(), sklearn("decomposition").PCA(20), sklearn("linear_model").LogisticRegression())
    given = pipeline(*steps).fit(X, y)
    file, by_onnxruntime = converted(given, X)

    model = sd.compile(file, example=X)
    client = sd.ModelClient(model.plan)
    labels = model.predict(client, client.server(model), rows)

    assert labels.tolist() == given.predict(rows).tolist() == by_onnxruntime(rows).tolist()


def test_a_perceptron_through_skl2onnx() -> None:
    X, y, rows = rows_of("digits")
    network = sklearn("neural_network").MLPClassifier((32,), max_iter=2000, random_state=0)
    given = network.fit(X / 16, y)
    file, by_onnxruntime = converted(given, X / 16)

    model = sd.compile(file, example=X / 16)
    client = sd.ModelClient(model.plan)
    labels = model.predict(client, client.server(model), rows / 16)

    wanted = given.predict(rows / 16)
    assert by_onnxruntime(rows / 16).tolist() == wanted.tolist()
    assert (labels == wanted).mean() >= 11 / 12


def test_a_random_forest() -> None:
    X, y, rows = rows_of("breast_cancer")
    given = sklearn("ensemble").RandomForestClassifier(50, max_depth=6, random_state=0).fit(X, y)

    model = sd.compile(given, example=X, error=0.1)
    client = sd.ModelClient(model.plan)
    labels = model.predict(client, client.server(model), rows[:4])

    assert labels.tolist() == given.predict(rows[:4]).tolist()
    assert np.allclose(model.clear(rows), given.predict_proba(rows), atol=1e-9)


def test_boosted_trees_by_their_files(tmp_path: Path) -> None:
    """Every row's margin is the library's own, from the file that it writes."""
    X, y, rows = rows_of("breast_cancer")
    xgboost, lightgbm = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")
    first = xgboost.XGBClassifier(n_estimators=20, max_depth=3).fit(X, y)
    second = lightgbm.LGBMClassifier(n_estimators=20, max_depth=3, verbose=-1).fit(X, y)
    first.save_model(tmp_path / "xgboost.json")
    (tmp_path / "lightgbm.json").write_text(json.dumps(second.booster_.dump_model()))
    margins = [first.predict(X, output_margin=True), second.predict(X, raw_score=True)]

    for given, name, wanted in zip((first, second), ("xgboost", "lightgbm"), margins, strict=True):
        model = sd.compile(tmp_path / f"{name}.json", example=X, error=0.1)
        client = sd.ModelClient(model.plan)
        labels = model.predict(client, client.server(model), rows[:4])

        assert labels.tolist() == given.predict(rows[:4]).tolist()
        assert np.allclose(model.clear(X)[:, 0], wanted, atol=1e-5)
        assert sd.compile(given, example=X, error=0.1).clear(X).tolist() == model.clear(X).tolist()


def test_boosted_trees_after_a_scaler() -> None:
    """Scores of rows at the moved thresholds, and one ulp beside, are the library's own."""
    X, y, _ = rows_of("breast_cancer")
    xgboost, lightgbm = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")
    rng = np.random.default_rng(28)
    for last in (
        xgboost.XGBRegressor(n_estimators=5, max_depth=3),
        lightgbm.LGBMRegressor(n_estimators=5, verbose=-1),
    ):
        given = pipeline(scaler(), last).fit(X, y + X[:, 0])
        model = sd.compile(given, example=X, error=0.1, insecure=11)
        rows = X[rng.integers(len(X), size=5000)]
        for column in model.plan.figures["columns"]:
            some = rng.random(len(rows)) < 0.9
            near = rng.choice(column["thresholds"], size=some.sum())
            rows[some, column["feature"]] = near + np.spacing(near) * rng.integers(-1, 2, some.sum())
        assert np.allclose(model.clear(rows)[:, 0], given.predict(rows), atol=1e-5)


def test_a_support_vector_machine() -> None:
    X, y, rows = rows_of("wine")
    given = pipeline(scaler(), sklearn("svm").SVC(kernel="rbf")).fit(X, y)

    model = sd.compile(given, example=X)
    client = sd.ModelClient(model.plan)
    labels = model.predict(client, client.server(model), rows)

    assert labels.tolist() == given.predict(rows).tolist()


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
def test_scores_of_support_vector_machines(kernel: str) -> None:
    """Scores of pairs are the library's own; two classes have one; regressions answer by theirs."""
    svm = sklearn("svm")
    X, y, _ = rows_of("wine")
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    for name, classes in [("SVC", 3), ("NuSVC", 3), ("SVC", 2)]:
        some = y < classes
        given = getattr(svm, name)(kernel=kernel, coef0=0.5, decision_function_shape="ovo")
        given.fit(X[some], np.array(["red", "white", "rosé"])[y[some]])
        model = sd.compile(given, example=X[some], insecure=11, degree=7, error=10.0)
        wanted = given.decision_function(X[some]).reshape(some.sum(), -1)
        assert np.allclose(model.clear(X[some]), wanted, atol=1e-9)
        labels = model.plan._labels(model.clear(X[some]))
        assert labels.tolist() == given.predict(X[some]).tolist()
        # Names of classes do not travel.
        plan = sd.ModelPlan.from_json(model.plan.to_json()).named(classes=given.classes_)
        assert plan._labels(model.clear(X[some])).tolist() == labels.tolist()
    for name in ("SVR", "NuSVR"):
        given = getattr(svm, name)(kernel=kernel).fit(X, y)
        model = sd.compile(given, example=X, insecure=11, degree=7, error=10.0)
        assert np.allclose(model.clear(X)[:, 0], given.predict(X), atol=1e-9)


def test_support_vector_machines_that_are_not_compiled() -> None:
    svm = sklearn("svm")
    X, y, _ = rows_of("wine")
    with pytest.raises(sd.UnsupportedError, match="break_ties"):
        sd.compile(svm.SVC(break_ties=True).fit(X, y), example=X)
    with pytest.raises(sd.UnsupportedError, match="degree 9"):
        sd.compile(svm.SVC(kernel="poly", degree=9).fit(X, y), example=X)
    with pytest.raises(sd.UnsupportedError, match="kernel 'precomputed'"):
        sd.compile(svm.SVC(kernel="precomputed").fit(X @ X.T, y), example=X @ X.T)
    with pytest.raises(sd.UnsupportedError, match="OneClassSVM is not compiled"):
        sd.compile(svm.OneClassSVM().fit(X), example=X)


def digits_for_torch(torch: Any, side: int) -> tuple[Any, Any, Any]:
    """Digits as images of so many pixels a side: to train by, their labels, and a few others."""
    X, y, rows = rows_of("digits")

    def images(of: Any) -> Any:
        small = torch.tensor(of / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)
        return torch.nn.functional.interpolate(small, (side, side)) if side > 8 else small

    return images(X), torch.tensor(y), images(rows)


def trained(torch: Any, network: Any, X: Any, y: Any, epochs: int) -> Any:
    torch.manual_seed(28)
    for layer in network.modules():
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()
    optimiser = torch.optim.Adam(network.parameters(), 2e-3)
    for _ in range(epochs):
        for some in torch.randperm(len(X)).split(64):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(network(X[some]), y[some]).backward()
            optimiser.step()
    return network.eval()


def test_a_perceptron_of_torch() -> None:
    torch = pytest.importorskip("torch")
    X, y, rows = digits_for_torch(torch, 8)
    nn = torch.nn
    layers = nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)
    network = trained(torch, nn.Sequential(*layers), X, y, 12)

    model = sd.compile(network, example=X)
    client = sd.ModelClient(model.plan)
    labels = model.predict(client, client.server(model), rows)

    with torch.no_grad():
        wanted, scores = network(rows).argmax(1), network(X).numpy()
    assert (labels == wanted.numpy()).mean() >= 11 / 12
    assert np.allclose(model.clear(X.numpy()), scores, atol=1e-4)
    # A program that was exported before, and the exporter of PyTorch before `torch.export`.
    program = torch.export.export(network, (X[:1],))
    assert np.allclose(sd.compile(program, example=X, insecure=11).clear(X.numpy()), scores, atol=1e-4)


def test_a_perceptron_of_a_torch_without_export(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    network = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).eval()
    X = torch.randn(40, 5)
    monkeypatch.setattr(_torch, "_has_export", lambda torch: False)
    model = sd.compile(network, example=X, insecure=11)
    assert np.allclose(model.clear(X.numpy()), network(X).detach().numpy(), atol=1e-5)


def lenet(torch: Any, pool: str) -> Any:
    """LeNet-5 of images of 28 pixels a side, with a third pool as many have it."""
    nn = torch.nn
    pooled = getattr(nn, pool)
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.ReLU(),
        pooled(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        pooled(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        pooled(2),
        nn.Flatten(),
        nn.Linear(128, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    )


def by_the_old_exporter(torch: Any, network: Any, example: Any) -> bytes:
    file = io.BytesIO()
    torch.onnx.export(network, (example,), file, dynamo=False)
    return file.getvalue()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_lenet_with_maxima_is_refused_and_with_means_compiles() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnx")
    X, y, rows = digits_for_torch(torch, 28)
    network = trained(torch, lenet(torch, "MaxPool2d"), X[:8], y[:8], 1)
    with pytest.raises(sd.UnsupportedError) as refused:
        sd.compile(by_the_old_exporter(torch, network, X[:1]), example=X[:8])
    assert str(refused.value).count("use average pools (AvgPool2d)") == 3
    for number in (2, 5, 8):
        assert f"layer /{number}/MaxPool: MaxPool: a maximum" in str(refused.value)
    with pytest.raises(sd.UnsupportedError, match=r"layer 2: MaxPool.*layer 5: MaxPool.*layer 8: MaxPool"):
        sd.compile(network, example=X[:8])

    network = trained(torch, lenet(torch, "AvgPool2d"), X, y, 3)
    file = by_the_old_exporter(torch, network, X[:1])

    # In a ring without security, which takes a quarter of the memory.
    model = sd.compile(file, example=X[:64], degree=15, insecure=14)
    client = sd.ModelClient(model.plan)
    labels = model.predict(client, client.server(model, stored=False), rows[:1])

    with torch.no_grad():
        wanted, label = network(X[:64]).numpy(), network(rows[:1]).argmax(1)
    assert labels.tolist() == label.tolist()
    assert np.allclose(model.clear(X[:64]), wanted, atol=1e-4 * np.abs(wanted).max())
    agreed = model.polynomial(X[:64]).argmax(axis=1) == wanted.argmax(axis=1)
    assert agreed.mean() >= 0.9


def resnet(torch: Any, blocks: int) -> Any:
    """The residual network of K. He et al. 2015 for 32 x 32 pixels: 6n + 2 layers, shortcuts by 1 x 1."""
    nn = torch.nn

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, before: int, after: int, stride: int) -> None:
            super().__init__()
            self.first = nn.Conv2d(before, after, 3, stride, 1, bias=False)
            self.second = nn.Conv2d(after, after, 3, 1, 1, bias=False)
            self.norms = nn.ModuleList([nn.BatchNorm2d(after), nn.BatchNorm2d(after)])
            self.shortcut = nn.Identity()
            if stride != 1 or before != after:
                one = nn.Conv2d(before, after, 1, stride, bias=False)
                self.shortcut = nn.Sequential(one, nn.BatchNorm2d(after))

        def forward(self, x: Any) -> Any:
            inner = torch.relu(self.norms[0](self.first(x)))
            return torch.relu(self.norms[1](self.second(inner)) + self.shortcut(x))

    layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
    for before, after in [(16, 16), (16, 32), (32, 64)]:
        sizes = [(before, after, 1 if before == after else 2), *[(after, after, 1)] * (blocks - 1)]
        layers += [Block(*size) for size in sizes]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_resnet_20_by_the_new_exporter(tmp_path: Path) -> None:
    """Its constants stand in a file beside, as the exporter has it."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("onnxscript")
    torch.manual_seed(28)
    network, X = resnet(torch, 3), torch.rand(8, 3, 32, 32)
    network(X)  # statistics of the norms
    network.eval()
    torch.onnx.export(network, (X[:1],), tmp_path / "resnet.onnx", dynamo=True, verbose=False)
    assert (tmp_path / "resnet.onnx.data").stat().st_size > 10**6

    model = sd.compile(tmp_path / "resnet.onnx", example=X, degree=254, bootstrap="A", error=1.0)

    with torch.no_grad():
        wanted = network(X).numpy()
    assert np.allclose(model.clear(X), wanted, atol=1e-4 * np.abs(wanted).max())
    assert model.plan.figures["refreshes"] == 18
    labels = model.polynomial(X).argmax(axis=1)
    assert (labels == wanted.argmax(axis=1)).all()


def keras_style(onnx: Any) -> tuple[Any, Any]:
    """A network as tf2onnx writes one of Keras: pixels before channels, norms apart from convolutions."""
    rng, helper, constants = np.random.default_rng(28), onnx.helper, []

    def constant(name: str, values: Any) -> str:
        found = np.asarray(values)
        kind = np.int64 if found.dtype.kind == "i" else np.float32
        constants.append(onnx.numpy_helper.from_array(found.astype(kind), name))
        return name

    nodes: list[Any] = []
    channels, value = 1, "image"

    def add(operator: str, *inputs: str, **attributes: Any) -> None:
        nonlocal value
        made = f"{operator} {len(nodes)}"
        nodes.append(helper.make_node(operator, [value, *inputs], [made], name=made, **attributes))
        value = made

    for k, features in enumerate((4, 8)):
        add("Transpose", perm=[0, 3, 1, 2])
        weights = constant(f"w{k}", rng.normal(size=(features, channels, 3, 3)) / np.sqrt(9 * channels))
        add("Conv", weights, auto_pad="SAME_UPPER", strides=[k + 1] * 2, kernel_shape=[3, 3])
        norm = [rng.uniform(0.5, 1.5, features), *rng.normal(0, 0.2, (2, features)), np.ones(features)]
        add("BatchNormalization", *(constant(f"n{k}{i}", x) for i, x in enumerate(norm)), epsilon=1e-3)
        add("Relu")
        add("Transpose", perm=[0, 2, 3, 1])
        channels = features
    # Pixels first: the order of a dense layer's inputs.
    add("Reshape", constant("flat", np.array([-1, 4 * 4 * 8])))
    add("MatMul", constant("dense", rng.normal(size=(128, 3)) / 4))
    add("Add", constant("bias", rng.normal(size=3)))
    add("Softmax", axis=-1)
    info = helper.make_tensor_value_info
    ends = [info("image", 1, ["N", 8, 8, 1])], [info(value, 1, ["N", 3])]
    graph = helper.make_graph(nodes, "model", *ends, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7), value


def test_a_network_of_the_style_of_keras() -> None:
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    X, _, rows = rows_of("digits")
    X, rows = X[:300].reshape(-1, 8, 8, 1) / 16, rows.reshape(-1, 8, 8, 1) / 16
    file, output = keras_style(onnx)
    session = runtime.InferenceSession(file.SerializeToString(), providers=["CPUExecutionProvider"])

    model = sd.compile(file, example=X)
    client = sd.ModelClient(model.plan)
    labels = model.predict(client, client.server(model), rows[:2])

    (wanted,) = session.run([output], {"image": rows.astype(np.float32)})
    scores = np.exp(model.clear(rows))
    assert np.allclose(scores / scores.sum(axis=1, keepdims=True), wanted, atol=1e-6)
    assert labels.tolist() == wanted[:2].argmax(axis=1).tolist()


def test_operations_of_torch() -> None:
    """Modules and functions, each as `torch.export` has it, beside PyTorch's own answers."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(28)
    nn, functional = torch.nn, torch.nn.functional

    class Of(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, function: Any) -> None:
            super().__init__()
            self.function = function

        def forward(self, x: Any) -> Any:
            return self.function(x)

    norm = nn.BatchNorm2d(4)
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2)
    table = torch.randn(6, 5)
    cases: list[tuple[Any, tuple[int, ...]]] = [
        *((module, (3, 4)) for module in (nn.ReLU(), nn.ReLU6(), nn.LeakyReLU(0.2), nn.PReLU(), nn.ELU(0.7))),
        *((module, (3, 4)) for module in (nn.SELU(), nn.CELU(1.5), nn.GELU(), nn.GELU("tanh"), nn.SiLU())),
        *((module, (3, 4)) for module in (nn.Sigmoid(), nn.Tanh(), nn.Softplus(2.0), nn.Hardtanh(-1, 2))),
        *((module, (3, 4)) for module in (nn.Hardsigmoid(), nn.Hardswish(), nn.Identity(), nn.Dropout())),
        (nn.Linear(4, 2, bias=False), (3, 4)),
        (nn.Conv1d(2, 3, 3, 2, 1), (2, 9)),
        (nn.Conv2d(4, 6, (3, 2), (2, 1), (1, 0), (1, 2), groups=2), (4, 7, 8)),
        (nn.Conv2d(2, 2, 3, padding="same"), (2, 5, 5)),
        (nn.Sequential(norm, nn.Conv2d(4, 2, 3, padding=1)), (4, 5, 5)),
        (nn.BatchNorm1d(5, affine=False), (5,)),
        (nn.AvgPool1d(2), (3, 6)),
        (nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False), (2, 6, 7)),
        (nn.AvgPool2d(2, divisor_override=3), (2, 6, 6)),
        (nn.AdaptiveAvgPool2d((3, 2)), (2, 7, 5)),
        (nn.AdaptiveAvgPool1d(4), (2, 6)),
        (nn.Softmax(-1), (4,)),
        (nn.LogSoftmax(1), (4,)),
        (nn.Sequential(nn.Unflatten(1, (2, 3)), nn.Flatten()), (6,)),
        (nn.ZeroPad2d((1, 0, 2, 1)), (2, 3, 3)),
        (Of(lambda x: x @ table + 1), (6,)),
        (Of(lambda x: table.T @ x.mT), (2, 6)),
        (Of(lambda x: (2 - x) * 3 - x / 4 + torch.arange(6) * table[:, 0]), (6,)),
        (Of(lambda x: x**3 - x * x + x.square()), (6,)),
        (Of(lambda x: x.mean() + x.sum(1, keepdim=True) - x.mean((0, 1))), (2, 3)),
        (Of(lambda x: torch.cat([x[:, 1:], x[:, ::2], x[:, -1:]], 1).flatten(1)), (5, 2)),
        (Of(lambda x: torch.stack(x.chunk(3, 1), 1) + x.unsqueeze(1)[..., :2]), (6,)),
        (Of(lambda x: x.split([1, 2], 2)[1].transpose(1, 2).contiguous().view(x.shape[0], -1)), (3, 3)),
        (Of(lambda x: x[:, 0].expand(2, 4) + x.select(1, 2).clone().float()), (3, 4)),
        (Of(lambda x: torch.addmm(table[:1, :4], x, table[:3, :4], beta=2, alpha=0.5)), (3,)),
        (Of(lambda x: torch.exp(-x) + torch.erf(x) + x.clamp(max=0.5)), (4,)),
        (Of(lambda x: functional.linear(x, table[:, :3] * 2).squeeze()), (1, 3)),
        (Of(lambda x: functional.relu_(x + 0).add_(1)), (4,)),
    ]
    for network, shape in cases:
        network.eval()
        X = torch.randn(5, *shape)
        model = sd.compile(network, example=X, insecure=11, degree=3, error=1e9)
        with torch.no_grad():
            wanted = torch.stack([network(x[None]).reshape(-1) for x in X])
        found = torch.from_numpy(model.clear(X.numpy()))
        dropped = model.plan.figures["dropped"]
        assert (dropped is not None) == isinstance(network, (nn.Softmax, nn.LogSoftmax))
        if dropped is not None:
            found = functional.log_softmax(found, 1).exp() if dropped == "Softmax" else found.log_softmax(1)
        assert torch.allclose(found.float(), wanted, atol=1e-4, rtol=1e-4), network


def test_modules_of_torch_that_are_not_compiled() -> None:
    torch = pytest.importorskip("torch")
    nn, functional = torch.nn, torch.nn.functional

    class Several(nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            y = functional.max_pool2d(x, 2)
            return torch.sqrt(nn.functional.layer_norm(y, (4,)))

    class Choice(nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return x if x.sum() > 0 else -x

    class Two(nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return x, x + 1

    class Attention(nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return x @ x.mT

    class Constant(nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return torch.ones(3)

    X = torch.randn(3, 1, 8, 8)
    with pytest.raises(sd.UnsupportedError) as refused:
        sd.compile(Several().eval(), example=X)
    for words in (
        "MaxPool: a maximum",
        "LayerNormalization: it divides",
        "Sqrt: it has",
        "test_frameworks.py, line",
    ):
        assert words in str(refused.value)
    with pytest.raises(sd.InputError, match=r"model\.eval\(\)"):
        sd.compile(nn.Sequential(nn.Linear(64, 2)), example=X)
    for network, words in [
        (Choice(), r"Choice cannot be exported for an input of the shape \(1, 1, 8, 8\)"),
        (Two(), "1 inputs and 2 outputs"),
        (Constant(), "does not depend on its input"),
        (nn.ConvTranspose2d(1, 1, 2), "ConvTranspose: it is not read"),
        (nn.Upsample(scale_factor=2), "Resize: it is not read"),
        (nn.Hardshrink(), "abs: the operator is not read.*Where: comparisons"),
        (Attention(), "MatMul: one factor has to be a constant"),
    ]:
        with pytest.raises(sd.UnsupportedError, match=words):
            sd.compile(network.eval(), example=X)


def test_constants_beside_a_file(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    weights = np.random.default_rng(3).normal(size=(4, 2)).astype(np.float32)
    helper, info = onnx.helper, onnx.helper.make_tensor_value_info
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    ends = [info("x", 1, ["N", 4])], [info("y", 1, ["N", 2])]
    graph = helper.make_graph([node], "g", *ends, [onnx.numpy_helper.from_array(weights, "w")])
    file = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    X = np.random.default_rng(4).normal(size=(20, 4))

    def saved(location: str, **entries: str) -> Path:
        copy = onnx.ModelProto()
        copy.CopyFrom(file)
        (constant,) = copy.graph.initializer
        constant.ClearField("raw_data")
        constant.data_location = 1
        for key, value in {"location": location, **entries}.items():
            constant.external_data.add(key=key, value=value)
        (tmp_path / "model.onnx").write_bytes(copy.SerializeToString())
        return tmp_path / "model.onnx"

    (tmp_path / "weights").write_bytes(b"before" + weights.tobytes())
    found = sd.compile(saved("weights", offset="6", length="32"), example=X, insecure=9)
    assert np.allclose(found.clear(X), X @ weights)
    with pytest.raises(sd.FormatError, match="other files"):
        sd.compile(saved("weights", offset="6").read_bytes(), example=X, insecure=9)
    (tmp_path / "link").symlink_to(tmp_path / "weights")
    for location, words in [
        ("../weights", "no file of its own folder"),
        ("/etc/passwd", "no file of its own folder"),
        ("..", "no file of its own folder"),
        ("link", "is a link"),
    ]:
        with pytest.raises(sd.FormatError, match=words):
            sd.compile(saved(location), example=X, insecure=9)
    with pytest.raises(sd.FormatError, match="cut off"):
        sd.compile(saved("weights", offset="7", length="32"), example=X, insecure=9)
    with pytest.raises(FileNotFoundError):
        sd.compile(saved("nothing"), example=X, insecure=9)
    whole = saved("weights", offset="6").read_bytes()
    for cut in range(1, len(whole)):
        (tmp_path / "model.onnx").write_bytes(whole[:cut])
        with pytest.raises((sd.FormatError, sd.UnsupportedError, sd.ShapeError, OSError)):
            sd.compile(tmp_path / "model.onnx", example=X, insecure=9)
