"""Trained models on encrypted inputs: a server computes what a network says of inputs that it cannot read.

>>> digits = np.sin(np.arange(40 * 6) ** 1.3).reshape(40, 6)
>>> model = sd.compile([sd.Dense(np.eye(6, 4), function="tanh"), sd.Dense(np.ones((4, 2)))],
...                    example=digits, error=1e-2, insecure=9)
>>> client = sd.Client(model.plan)
>>> server = client.server(model)
>>> answers = client.decrypt(server.run(client.encrypt(digits[:3])))
>>> bool(np.abs(answers - model.polynomial(digits[:3])).max() < 1e-2)
True
>>> model.predict(client, server, digits[:3]).shape
(3,)
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _core, _forests, _kernels, _torch
from ._errors import InputError, ShapeError, UnsupportedError
from ._estimators import (
    Dense,
    Read,
    of_estimator,
    preparations,
    require_same_answers,
    require_steps,
    steps_of,
)
from ._files import PathLike, Source, Travels, octets
from ._frames import names, require_names
from ._keys import KeyedServer, SecretHolder
from ._onnx import with_constants
from ._progress import progress
from ._values import array, count, real

__all__ = [
    "CompiledModel",
    "Dense",
    "ModelAnswer",
    "ModelClient",
    "ModelPlan",
    "ModelRequest",
    "ModelServer",
    "compile",
]

Core = TypeVar("Core", bound="_core.ModelRequest | _core.ModelAnswer")

#: Functions by the names that a `Dense` layer and scikit-learn give them.
_FUNCTIONS: dict[str, Any] = {
    "identity": "identity",
    "relu": "relu",
    "tanh": "tanh",
    "logistic": "sigmoid",
    "sigmoid": "sigmoid",
    "square": {"power": 2},
    "exp": "exp",
    "softplus": "softplus",
    "gelu": "gelu",
    "silu": {"swish": 1.0},
}


class _Wanted(NamedTuple):
    error: float
    label: str
    agreement: float
    approximation: float | None
    degree: int | None
    margin: float
    batch: int
    bootstrap: str | None
    insecure: int | None


def compile(  # noqa: A001
    model: Any,
    *,
    example: ArrayLike,
    error: float = 1e-2,
    agreement: float = 0.99,
    approximation: float | None = None,
    degree: int | None = None,
    margin: float = 1.5,
    batch: int = 1,
    bootstrap: str | None = None,
    insecure: int | None = None,
) -> CompiledModel:
    """A model for encrypted inputs: of an ONNX file, a module of PyTorch, an estimator, or `Dense` layers.

    A module is read by `torch.export`, in evaluation and in single precision. Constants of a file may stand
    beside it. An estimator is one of scikit-learn, a pipeline of such, or a booster.

    `example` has inputs row by row, or of the model's own shape: at least one, better hundreds, and not
    those that the model is judged by. Ranges of all values are theirs, times `margin`; what lies outside
    is refused before encryption, or at decryption as far as it shows. They are public: the plan has them,
    in two digits.

    Functions become polynomials of the least degrees with which the share `agreement` of the examples
    keeps its label (of a regression: no output is further away than `approximation`, which is `error`
    without), or of `degree`. `error` is another matter: what encryption adds, the bound on the distance of
    a decrypted answer from the polynomial model's. Where it cannot be had for all inputs, as in deep
    networks, it is for inputs like the examples, which the plan says. `batch` examples come together: in one
    ciphertext, as far as there is room.

    Parameters with as many levels as the layers take, or a bootstrapping set with refreshes where they cost
    least: it is what takes least seconds at this machine's prices (`sudare calibrate`), or the set
    `bootstrap` (`"A"`, `"A12"`, `"B"`, `"C"`).

    Support vector machines become networks: kernels with each vector, then a linear map. Scores of several
    classes are those of pairs, and labels are who wins most.

    Trees, forests and gradient boosting of scikit-learn, and boosters of XGBoost and LightGBM or their JSON,
    become tables: every decision is the model's own, also after scalers in a pipeline,
    and `error` is the bound on its scores. The share `agreement` of the examples has a label that no such
    error changes; degree, margin and approximation mean nothing there. The plan has the thresholds of each
    feature, and no tree.

    `insecure` is log2 of the degree of a ring without security, for tests.

    An estimator's own answers to the examples are compared with those of what was read of it. The names of
    the columns with which it was fitted, or of a frame of examples, stay with the model's plan while it does
    not travel, and the client refuses a frame with others.

    Raises `UnsupportedError`, which names all layers that cannot be computed and what to write instead;
    `PlanError` for a wish that nothing satisfies, with what would do; `FormatError` for a damaged file;
    `ShapeError` and `InputError` for examples that are none.

    >>> X = np.sin(np.arange(120.0)).reshape(40, 3)
    >>> model = compile([Dense(np.eye(3, 2))], example=X, error=1e-2)
    >>> client = sd.Client(model.plan)
    >>> server = client.server(model)
    >>> answers = client.decrypt(server.run(client.encrypt(X[:2])))
    >>> bool(np.abs(answers - model.polynomial(X[:2])).max() < 1e-2)
    True
    """
    wanted = _Wanted(
        real(error, "error"),
        "numbers",
        real(agreement, "agreement"),
        None if approximation is None else real(approximation, "approximation"),
        None if degree is None else count(degree, "degree"),
        real(margin, "margin"),
        count(batch, "batch"),
        bootstrap,
        insecure,
    )
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    folder = None
    if isinstance(model, (str, os.PathLike)):
        folder = os.path.dirname(os.path.abspath(model))
        with open(model, "rb") as opened:
            model = opened.read()
    if isinstance(model, (bytes, bytearray, memoryview)):
        model = bytes(model)
        if model.lstrip()[:1] == b"{":
            compiled = _of_forest(_forests.read_text(model), _rows(example, None), wanted)
        else:
            file = model if folder is None else with_constants(model, folder)
            compiled = _of_onnx(file, example, wanted)
        return CompiledModel(compiled._core, compiled._classes, names(example))
    if _torch.is_module(model):
        return _of_module(model, example, wanted)
    require_steps(model)
    features = _features(model, example)
    rows = _rows(example, None, features)
    forest = _forests.read(model, rows)
    if forest is not None:
        compiled = _of_forest(forest, rows, wanted)
    elif _kernels.is_machine(model):
        compiled = _of_machine(model, rows, wanted)
    else:
        read = Read(list(model), "", None) if isinstance(model, (list, tuple)) else of_estimator(model)
        compiled = _of_layers(read, rows, wanted)
    if hasattr(model, "fit"):
        label = compiled.plan.figures["label"]
        require_same_answers(model, rows, compiled.clear(rows), label, compiled._classes)
    return CompiledModel(compiled._core, compiled._classes, features)


def _features(model: Any, example: Any) -> list[str] | None:
    """The names of the columns, if any: those that the estimator was fitted with, or the examples'."""
    given = names(example)
    if hasattr(model, "booster_"):
        # LightGBM writes a space as _, and makes names up where it had none: only their order tells.
        written = {name.replace(" ", "_"): name for name in given or []}
        order = list(getattr(model, "feature_name_", []))
        if sorted(written) == sorted(order):
            require_names([written[name] for name in order], example)
        return given
    known = getattr(model, "feature_names_in_", None)
    return given if known is None else [str(name) for name in known]


def _of_layers(read: Read, rows: NDArray[np.float64], wanted: _Wanted) -> CompiledModel:
    inputs = rows.shape[1]
    layers = []
    for number, layer in enumerate(read.layers):
        weights = np.asarray(layer.weights, dtype=np.float64)
        if weights.ndim == 1:
            # One number for each input.
            weights = np.diag(weights)
        if weights.ndim != 2 or weights.shape[0] != inputs:
            raise ShapeError(
                f"layer {number} has weights of the shape {weights.shape}, and ({inputs}, …) is needed"
            )
        inputs = weights.shape[1]
        bias = np.zeros(inputs) if layer.bias is None else np.broadcast_to(layer.bias, (inputs,))
        if layer.function not in _FUNCTIONS:
            known = ", ".join(_FUNCTIONS)
            raise UnsupportedError(
                f"layer {number}: the function {layer.function!r} is not known; take one of {known}"
            )
        function = json.dumps(_FUNCTIONS[layer.function])
        title = layer.name or f"layer {number}"
        layers.append((title, np.ascontiguousarray(weights), [float(b) for b in bias], function))
    if not layers:
        raise InputError("a model needs at least one layer")
    wanted = _labelled(wanted, read.label or _label(inputs))
    return CompiledModel(_core.Model.from_layers(layers, rows, wanted), read.classes)


def _label(outputs: int) -> str:
    return "argmax" if outputs > 1 else "numbers"


def _labelled(wanted: _Wanted, label: str) -> _Wanted:
    if label == "numbers" and wanted.approximation is None and wanted.degree is None:
        wanted = wanted._replace(approximation=wanted.error)
    return wanted._replace(label=label)


def _of_onnx(file: bytes, example: ArrayLike, wanted: _Wanted) -> CompiledModel:
    inputs, outputs = _core.Model.sizes(file)
    core = _core.Model.from_onnx(file, _rows(example, inputs), _labelled(wanted, _label(outputs)))
    return CompiledModel(core, None)


def _of_machine(model: Any, rows: NDArray[np.float64], wanted: _Wanted) -> CompiledModel:
    *before, last = steps_of(model)
    machine = _kernels.read(preparations(before), last, rows)
    core = _core.Model.from_onnx(machine.file, rows, _labelled(wanted, machine.label))
    return CompiledModel(core, machine.classes)


def _of_module(model: Any, example: Any, wanted: _Wanted) -> CompiledModel:
    examples = _torch.examples_of(example)
    compiled = _of_onnx(_torch.read(model, examples), examples, wanted)
    dropped = compiled.plan.figures["dropped"]
    _torch.require_same_answers(model, examples, compiled.clear, dropped)
    return CompiledModel(compiled._core, None, names(example))


def _of_forest(forest: _forests.Forest, rows: NDArray[np.float64], wanted: _Wanted) -> CompiledModel:
    wanted = wanted._replace(label=forest.label)
    core = _core.Model.from_trees(forest.single, forest.base, forest.trees, rows, wanted)
    return CompiledModel(core, forest.classes)


def _rows(values: Any, inputs: int | None, features: list[str] | None = None) -> NDArray[np.float64]:
    """Examples, one a row; of a frame its columns are `features`, in their order."""
    require_names(features, values)
    found = array(values)
    if found.dtype.kind not in "biuf":
        remedy = "; one row of a frame is frame.iloc[[0]]" if hasattr(values, "iloc") else ""
        raise InputError(f"inputs are real numbers, not {found.dtype}{remedy}")
    if found.ndim == 0 or found.size == 0:
        raise ShapeError("inputs are a table with at least one example, a row each")
    if inputs is None:
        rows = found.reshape(found.shape[0], -1) if found.ndim > 1 else found.reshape(1, -1)
    elif found.size % inputs or found.size // inputs not in (1, found.shape[0]):
        raise ShapeError(f"an example has {inputs} numbers, and these have the shape {found.shape}")
    else:
        rows = found.reshape(-1, inputs)
    return np.ascontiguousarray(rows, dtype=np.float64)


class ModelPlan(Travels):
    """What client and server of a compiled model share: parameters, keys, ranges, promises. No weights."""

    def __init__(
        self,
        core: _core.ModelPlan,
        classes: NDArray[Any] | None = None,
        features: list[str] | None = None,
    ) -> None:
        self._core, self._classes, self._features = core, classes, features

    @classmethod
    def from_json(cls, text: str) -> ModelPlan:
        """A plan of its text. Raises `FormatError`, `SecurityError`."""
        return cls(_core.ModelPlan.from_json(text))

    @classmethod
    def load(cls, path: PathLike) -> ModelPlan:
        """A plan of a file that `save` wrote. Raises as `from_json`."""
        return cls.from_json(octets(path).decode(errors="replace"))

    def named(self, columns: Iterable[str] | None = None, classes: ArrayLike | None = None) -> ModelPlan:
        """The same plan with names, which do not travel with it: of inputs' columns, and of classes.

        Its client refuses frames with other columns or another order, and labels are these classes. Names
        that are left out stay as they are.

        Raises `ShapeError` unless there is a name for each number of an input, and for each class, and
        `InputError` for one text in the place of names.
        """
        if isinstance(columns, str):
            raise InputError("names of columns are a list of texts, not one text")
        inputs, outputs, _ = self._core.sizes
        wanted = {"numbers": 0, "sign": 2}.get(self.figures["label"], outputs)
        if wanted == 0 and classes is not None and _kernels.pairs(np.size(classes)) == outputs:
            # Scores of pairs, as a support vector machine of several classes has.
            wanted = np.size(classes)
        features = self._features if columns is None else [str(name) for name in columns]
        labels = self._classes if classes is None else np.asarray(classes)
        if features is not None and len(features) != inputs:
            raise ShapeError(f"an input has {inputs} numbers, and there are {len(features)} names of columns")
        if labels is not None and labels.shape != (wanted,):
            raise ShapeError(f"this model has {wanted} classes, and the names have the shape {labels.shape}")
        return ModelPlan(self._core, labels, features)

    @property
    def hash(self) -> str:
        """Names the plan: parties that have one name have one plan."""
        return self._core.hash

    @property
    def figures(self) -> dict[str, Any]:
        """All that it says, as its text has it."""
        figures: dict[str, Any] = json.loads(self._core.to_json())
        return figures

    @property
    def key_bytes(self) -> int:
        """Bytes of the evaluation keys in memory."""
        return self._core.key_bytes

    @property
    def error(self) -> float:
        """How far a decrypted answer is at most from the polynomial model's, or a forest's: promised."""
        return float(self.figures["error"])

    @property
    def seconds(self) -> float:
        """Seconds for one ciphertext on one thread, with encoded weights, as they were predicted."""
        return float(self.figures["seconds"])

    @property
    def memory(self) -> int:
        """Bytes of memory that a server takes, as they were predicted; a client is apart."""
        return self._core.memory

    def to_json(self) -> str:
        """Its text."""
        return self._core.to_json()

    def _saved(self) -> bytes:
        return self.to_json().encode()

    def _labels(self, answers: NDArray[np.float64]) -> NDArray[Any]:
        """Labels of a classifier's answers, else numbers."""
        label = self.figures["label"]
        if label == "numbers" and self._classes is not None:
            return self._classes[_kernels.votes(answers, len(self._classes))]
        if label == "numbers":
            return answers[:, 0] if answers.shape[1] == 1 else answers
        labels = np.array(self._core.labels(answers), dtype=np.int64)
        return labels if self._classes is None else self._classes[labels]

    def __str__(self) -> str:
        return self._core.explain()

    def __repr__(self) -> str:
        inputs, outputs, _ = self._core.sizes
        return f"<sudare model plan: {inputs} numbers in, {outputs} out, {self.hash[:12]}>"


class CompiledModel(Travels):
    """A model with its weights and its plan: what `compile` gives, and a server computes with.

    >>> X = np.sin(np.arange(120.0)).reshape(40, 3)
    >>> model = sd.compile([sd.Dense(np.eye(3, 2))], example=X, error=1e-2)
    >>> client = sd.Client(model.plan)
    >>> model.predict(client, client.server(model), X[:2]).shape
    (2,)
    """

    def __init__(
        self, core: _core.Model, classes: NDArray[Any] | None = None, features: list[str] | None = None
    ) -> None:
        self._core, self._classes, self._features = core, classes, features

    @classmethod
    def from_bytes(cls, data: Source) -> CompiledModel:
        """A model of its bytes, or of a file that `save` wrote. It has no names of classes and columns.

        Raises `FormatError` for anything damaged, `KeyMismatchError` for weights of another plan.
        """
        return cls(_core.Model.from_bytes(octets(data)))

    @property
    def plan(self) -> ModelPlan:
        """What its client needs."""
        return ModelPlan(self._core.plan, self._classes, self._features)

    def to_bytes(self) -> bytes:
        """Plan and weights, for a server."""
        return self._core.to_bytes()

    def _saved(self) -> bytes:
        return self.to_bytes()

    def clear(self, inputs: ArrayLike) -> NDArray[np.float64]:
        """The given model's answers, in the clear and in double precision. Raises `ShapeError`."""
        return self._core.clear(_rows(inputs, self._core.plan.sizes[0], self._features), polynomial=False)

    def polynomial(self, inputs: ArrayLike) -> NDArray[np.float64]:
        """The polynomial model's answers, in the clear; of a forest its own. Raises `ShapeError`."""
        return self._core.clear(_rows(inputs, self._core.plan.sizes[0], self._features), polynomial=True)

    def predict(self, client: ModelClient, server: ModelServer, inputs: ArrayLike) -> NDArray[Any]:
        """Encrypts inputs, computes on them, and decrypts: labels of a classifier, else numbers.

        Raises as `ModelClient.encrypt`, `ModelServer.run` and `ModelClient.decrypt`.
        """
        return self.plan._labels(client.decrypt(server.run(client.encrypt(inputs))))

    def __str__(self) -> str:
        return str(self.plan)

    def __repr__(self) -> str:
        return repr(self.plan).replace("model plan", "model", 1)


class _Message(Travels, Generic[Core]):
    """Several encrypted examples, or answers to them."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def __len__(self) -> int:
        return self._core.count

    def to_bytes(self) -> bytes:
        """What travels."""
        return self._core.to_bytes()

    def _saved(self) -> bytes:
        return self.to_bytes()

    @classmethod
    def _core_of(cls, message: Any, maker: str) -> Core:
        """What is inside, of an argument that may be anything."""
        if not isinstance(message, cls):
            kind = type(message).__name__
            raise UnsupportedError(f"{maker} gives what is wanted here, {cls.__name__}; this is {kind}")
        return message._core


class ModelRequest(_Message[_core.ModelRequest]):
    """Encrypted inputs."""

    @classmethod
    def from_bytes(cls, plan: ModelPlan, data: Source) -> ModelRequest:
        """A request from its bytes. Raises `FormatError`, `KeyMismatchError` for another plan's."""
        return cls(_core.ModelRequest.from_bytes(plan._core, octets(data)))

    def __repr__(self) -> str:
        return f"<sudare model request of {len(self)}>"


class ModelAnswer(_Message[_core.ModelAnswer]):
    """Encrypted answers."""

    @classmethod
    def from_bytes(cls, plan: ModelPlan, data: Source) -> ModelAnswer:
        """An answer from its bytes. Raises `FormatError`, `KeyMismatchError` for another plan's."""
        return cls(_core.ModelAnswer.from_bytes(plan._core, octets(data)))

    def __repr__(self) -> str:
        return f"<sudare model answer of {len(self)}>"


class ModelServer(KeyedServer[_core.ModelServer]):
    """Computes with a model's weights and evaluation keys. It holds nothing secret."""

    def __init__(self, core: _core.ModelServer, model: CompiledModel) -> None:
        self._core, self._model = core, model

    @classmethod
    def from_bytes(
        cls, model: CompiledModel, data: Source, *, threads: int = 0, stored: bool | None = None
    ) -> ModelServer:
        """A server from evaluation keys. With `stored` weights are encoded once, else for every request.

        With `stored=None` the server keeps encoded weights of up to 1 GiB.

        Raises `FormatError` for anything damaged, `KeyMismatchError` for keys of other parameters,
        `MissingKeyError`.
        """
        return cls(_core.ModelServer.from_bytes(model._core, octets(data), threads, stored), model)

    def run(self, request: ModelRequest) -> ModelAnswer:
        """The model's answers to encrypted inputs, as many as the request has examples.

        Raises `KeyMismatchError` for a request of another plan or key, `UnsupportedError` for what is none.
        """
        core = ModelRequest._core_of(request, "client.encrypt(inputs)")
        with progress("computing") as report:
            return ModelAnswer(self._core.run(core, report))

    @property
    def plan(self) -> ModelPlan:
        """The model's plan."""
        return self._model.plan

    def __repr__(self) -> str:
        return f"<sudare model server {self.threads} threads, keys {self.key_bytes / 1e6:.1f} MB, no secret>"


class ModelClient(SecretHolder[_core.ModelClient]):
    """Owns the secret key: encrypts inputs, reads answers. `sudare.Client(model.plan)` makes one."""

    _again: ClassVar[str] = "ModelClient.from_secret_bytes(plan, data)"

    def __init__(self, plan: ModelPlan, *, threads: int = 0) -> None:
        self._core, self._plan, self._threads = _core.ModelClient(plan._core, threads), plan, threads

    @classmethod
    def from_secret_bytes(cls, plan: ModelPlan, data: Source, *, threads: int = 0) -> ModelClient:
        """A client from the secret key that `secret_bytes` or `save` gave.

        Raises `FormatError` for anything damaged, `KeyMismatchError` for a key of other parameters.
        """
        client = cls.__new__(cls)
        client._core = cls._read(_core.ModelClient, plan._core, data, threads)
        client._plan, client._threads = plan, threads
        return client

    @property
    def plan(self) -> ModelPlan:
        """The plan."""
        return self._plan

    def server(self, model: CompiledModel, *, stored: bool | None = None) -> ModelServer:
        """A server of a model with new evaluation keys, for one process.

        Elsewhere `ModelServer.from_bytes` makes one.

        Raises `KeyMismatchError` for a model of another plan.
        """
        return ModelServer(self._core.server(model._core, self._threads, stored), model)

    def encrypt(self, inputs: ArrayLike) -> ModelRequest:
        """Encrypt inputs, row by row or of the model's own shape.

        Raises `InputError` for numbers that are not finite or outside of the calibrated range, which it
        names; `ShapeError` for other shapes, and for a frame whose columns have other names or another order
        than those that the model was fitted with.
        """
        rows = _rows(inputs, self._plan._core.sizes[0], self._plan._features)
        return ModelRequest(self._core.encrypt(rows))

    def decrypt(self, answer: ModelAnswer) -> NDArray[np.float64]:
        """The answers, one a row: logits of a classifier.

        Raises `PrecisionError` where a value on the way left the interval of its polynomial, as far as an
        answer shows it; `KeyMismatchError` for another plan's or key's answer; `UnsupportedError` for what is
        no answer.
        """
        return self._core.decrypt(ModelAnswer._core_of(answer, "server.run(request)"))
