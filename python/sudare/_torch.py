"""Modules of PyTorch as networks: what `torch.export` makes of one, operation by operation.

What depends on no input is computed while it is read. Where PyTorch has no `torch.export`, its exporter of
ONNX files writes the network.
"""

from __future__ import annotations

import importlib
import inspect
import io
import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._errors import InputError, UnsupportedError
from ._onnx import Graph
from ._values import array

#: Examples whose answers are compared with the module's own.
_COMPARED = 16
#: How far those may be, of the largest: a module computes in single precision.
_SINGLE = 1e-4
#: Operations that stay whole: PyTorch would write them by comparisons, or by products that are no gates.
_WHOLE = (
    "_adaptive_avg_pool2d",
    "_prelu_kernel",
    "adaptive_avg_pool1d",
    "celu",
    "elu",
    "gelu",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "silu",
    "softplus",
)
#: Functions of every element that have no more to say, by ONNX's names.
_FUNCTIONS = {
    "erf": "Erf",
    "exp": "Exp",
    "hardswish": "HardSwish",
    "neg": "Neg",
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "silu": "Swish",
    "tanh": "Tanh",
}
#: Operations that give what they take, and those that give its numbers in another shape.
_SAME = ("alias", "clone", "detach", "lift_fresh_copy")
_SHAPES = ("_unsafe_view", "reshape", "squeeze", "unsqueeze", "view")
#: What is refused, by the names of which the reader knows what to write instead.
_REFUSED = {
    "adaptive_max_pool2d": "GlobalMaxPool",
    "amax": "ReduceMax",
    "amin": "ReduceMin",
    "eq": "Equal",
    "ge": "Greater",
    "gt": "Greater",
    "le": "Less",
    "log": "Log",
    "lt": "Less",
    "max_pool2d_with_indices": "MaxPool",
    "max_pool3d_with_indices": "MaxPool",
    "maximum": "Max",
    "minimum": "Min",
    "native_group_norm": "GroupNormalization",
    "native_layer_norm": "LayerNormalization",
    "reciprocal": "Reciprocal",
    "rsqrt": "Sqrt",
    "sqrt": "Sqrt",
    "topk": "TopK",
    "upsample_bilinear2d": "Resize",
    "upsample_nearest2d": "Resize",
    "where": "Where",
}


def is_module(model: Any) -> bool:
    """Whether it is a module of PyTorch, or a program that `torch.export` made of one."""
    return hasattr(model, "state_dict") and (hasattr(model, "forward") or _is_program(model))


def _is_program(model: Any) -> bool:
    return hasattr(model, "run_decompositions") and hasattr(model, "graph_signature")


def _has_export(torch: Any) -> bool:
    """Whether it has `torch.export`: since 2.1."""
    return hasattr(getattr(torch, "export", None), "export")


def examples_of(values: Any) -> NDArray[np.float64]:
    """Examples, of which the first axis counts; tensors on any device."""
    if hasattr(values, "detach"):
        values = values.detach().cpu().double().numpy()
    found = array(values)
    if found.dtype.kind not in "biuf":
        raise InputError(f"inputs are real numbers, not {found.dtype}")
    return np.atleast_2d(found).astype(np.float64)


def read(model: Any, examples: NDArray[np.float64]) -> bytes:
    """The file of the network that a module computes of one of `examples`.

    Raises `InputError` for a module in training, `UnsupportedError` for one that cannot be written.
    """
    torch = importlib.import_module("torch")
    name = type(model).__name__
    if _is_program(model):
        model = model.module()
    elif getattr(model, "training", False):
        raise InputError(f"{name} is in training; compile it after model.eval()")
    example = _tensor(torch, model, examples[:1])
    try:
        if not _has_export(torch):
            return _by_exporter(torch, model, example)
        program = _decomposed(torch, torch.export.export(model, (example,)))
    except Exception as error:  # of any kind: the module's own code has run
        said = str(error).strip().splitlines() or [""]
        raise UnsupportedError(
            f"{name} cannot be exported for an input of the shape {tuple(example.shape)}: "
            f"{type(error).__name__}: {said[0]}"
        ) from error
    return _Program(torch, program).file()


def require_same_answers(
    model: Any,
    examples: NDArray[np.float64],
    scores: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    dropped: str | None,
) -> None:
    """Refuses a module whose answers to some of the examples are not `scores` of them.

    What the client computes after decryption, `dropped`, is not in the scores.
    """
    torch = importlib.import_module("torch")
    name, model = type(model).__name__, model.module() if _is_program(model) else model
    last = {"Softmax": torch.softmax, "LogSoftmax": torch.log_softmax}
    rows = examples[:_COMPARED]
    for row, found in zip(rows, scores(rows), strict=True):
        with torch.no_grad():
            wanted = model(_tensor(torch, model, row[None])).double().cpu()
        got = torch.from_numpy(found)
        if dropped is not None:
            if dropped not in last or wanted.numel() != max(wanted.shape):
                return
            got = last[dropped](got, 0)
        wanted = wanted.reshape(-1)
        if (got - wanted).abs().max() > _SINGLE * max(float(wanted.abs().max()), 1e-300):
            raise UnsupportedError(
                f"{name} answers the examples otherwise than the network that was read of it; export it to "
                "ONNX, and compile the file"
            )


def _tensor(torch: Any, model: Any, rows: NDArray[np.float64]) -> Any:
    """Examples as the module takes them: on its device, in its precision."""
    weights = [w for w in (*model.parameters(), *model.buffers()) if w.is_floating_point()]
    like = weights[0] if weights else torch.zeros(())
    return torch.from_numpy(np.ascontiguousarray(rows)).to(device=like.device, dtype=like.dtype)


def _by_exporter(torch: Any, model: Any, example: Any) -> bytes:
    """By the exporter of ONNX files that PyTorch had first."""
    file, more = io.BytesIO(), {}
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:
        more["dynamo"] = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, (example,), file, **more)
    return file.getvalue()


def _decomposed(torch: Any, program: Any) -> Any:
    """A program in PyTorch's core operations, but for those that stay whole."""
    if hasattr(torch.export, "default_decompositions"):
        table = torch.export.default_decompositions()
    else:
        table = importlib.import_module("torch._decomp").core_aten_decompositions()
    for operation in list(table):
        if str(operation).removeprefix("aten.").split(".")[0] in _WHOLE:
            table.pop(operation)
    return program.run_decompositions(table)


class _Program:
    """An exported program on its way into a graph."""

    def __init__(self, torch: Any, program: Any) -> None:
        self.torch, self.module = torch, program.graph_module
        signature = program.graph_signature
        outputs = [spec for spec in signature.output_specs if spec.kind.name == "USER_OUTPUT"]
        inputs = [spec.arg.name for spec in signature.input_specs if spec.kind.name == "USER_INPUT"]
        if len(inputs) != 1 or len(outputs) != 1:
            raise UnsupportedError(
                f"a module of {len(inputs)} inputs and {len(outputs)} outputs; those of one of each are "
                "compiled"
            )
        self.input = inputs[0]
        stored = {**program.state_dict, **(getattr(program, "constants", None) or {})}
        self.stored = {
            spec.arg.name: stored.get(spec.target)
            for spec in signature.input_specs
            if spec.kind.name != "USER_INPUT"
        }
        #: Of each node its tensor if it depends on no input, else the name of its value.
        self.values: dict[Any, Any] = {}

    def file(self) -> bytes:
        """The network's file."""
        output: Any = None
        for node in self.module.graph.nodes:
            if node.op == "placeholder" and node.name == self.input:
                self.graph = Graph(tuple(int(d) for d in node.meta["val"].shape))
                self.values[node] = "x"
            elif node.op == "placeholder":
                self.values[node] = self.stored[node.name]
            elif node.op == "get_attr":
                self.values[node] = getattr(self.module, node.target)
            elif node.op == "output":
                (output,) = node.all_input_nodes
            elif node.users:
                self.values[node] = self.made(node)
        value = self.values[output]
        if not isinstance(value, str):
            raise UnsupportedError("a module whose output does not depend on its input")
        return self.graph.file(value)

    def made(self, node: Any) -> Any:
        """What an operation gives."""
        if not any(isinstance(self.values[n], str) for n in node.all_input_nodes):
            args, kwargs = self.torch.fx.node.map_arg((node.args, node.kwargs), self.values.__getitem__)
            with self.torch.no_grad():
                return node.target(*args, **kwargs)
        if getattr(node.target, "__name__", "") == "getitem":
            value, which = self.values[node.args[0]], node.args[1]
            return f"{value}, {which}" if which else value
        return _Operation(self, node).value()

    def name(self, value: Any) -> str:
        """The name of a value: of a node's, else of numbers as a constant, and of nothing."""
        if isinstance(value, self.torch.fx.Node):
            value = self.values[value]
        if value is None or isinstance(value, str):
            return value or ""
        if isinstance(value, self.torch.Tensor):
            value = value.detach().cpu().double().numpy()
        if not isinstance(value, np.ndarray):
            value = float(value)
        return self.graph.constant(value)

    def numbers(self, value: Any) -> NDArray[np.float64] | None:
        """A constant's numbers; none of what depends on the input."""
        value = self.values[value] if isinstance(value, self.torch.fx.Node) else value
        return value.detach().cpu().double().numpy() if isinstance(value, self.torch.Tensor) else None


class _Operation:
    """One operation that depends on the input."""

    def __init__(self, program: _Program, node: Any) -> None:
        self.program, self.node = program, node
        self.operation = str(node.target).removeprefix("aten.").split(".")[0]
        #: Its arguments by their names, those that were left out by what stands for them.
        self.arguments: dict[str, Any] = dict(node.kwargs)
        schema = getattr(node.target, "_schema", None)
        for k, argument in enumerate(schema.arguments if schema is not None else ()):
            given = node.args[k] if k < len(node.args) else argument.default_value
            self.arguments.setdefault(argument.name, given)

    def value(self) -> str:
        """Its result."""
        first = self.node.args[0]
        if self.operation in _SAME:
            return self.program.name(first)
        if self.operation in _SHAPES:
            return self.onnx("Reshape", first, np.array(self.shape()))
        if self.operation in _FUNCTIONS:
            return self.onnx(_FUNCTIONS[self.operation], first)
        write = _WRITERS.get(self.operation)
        written = None if write is None else write(self, **self.arguments)
        return self.refused() if written is None else written

    def refused(self) -> str:
        """A node that the reader refuses by its layer and operator."""
        inputs = [n for n in self.node.all_input_nodes if isinstance(self.program.values[n], str)]
        return self.onnx(_REFUSED.get(self.operation, self.operation), *inputs)

    def onnx(self, operator: str, *inputs: Any, **attributes: Any) -> str:
        """A node of ONNX's operator: of nodes, tensors, arrays and numbers."""
        names = [self.program.name(value) for value in inputs]
        return self.program.graph.node(operator, *names, name=self.title(), **attributes)

    def title(self) -> str:
        """The layer that it is of: a module's path, else its own name, with the line of the user's code."""
        stack = [str(path) for path, _ in (self.node.meta.get("nn_module_stack") or {}).values()]
        if stack and stack[-1]:
            return stack[-1].removeprefix("L['self'].")
        library = os.path.dirname(self.program.torch.__file__)
        lines = [line.strip() for line in (self.node.meta.get("stack_trace") or "").splitlines()]
        own = [line for line in lines if line.startswith('File "') and library not in line]
        if not own:
            return str(self.node.name)
        _, path, rest = own[-1].split('"', 2)
        line = rest.removeprefix(", line ").split(",")[0]
        return f"{self.node.name} ({os.path.basename(path)}, line {line})"

    def shape(self, node: Any = None) -> tuple[int, ...]:
        """The shape of the result, or of a node's."""
        value = (self.node if node is None else node).meta["val"]
        return tuple(int(d) for d in (value[0] if isinstance(value, (list, tuple)) else value).shape)


def _scaled(op: _Operation, value: Any, factor: float) -> Any:
    return value if factor == 1 else op.onnx("Mul", value, factor)


def _convolution(op: _Operation, *, weight: Any, bias: Any, **about: Any) -> str:
    value = about["input"]
    if about["transposed"]:
        return op.onnx("ConvTranspose", value)
    axes = len(op.shape(value)) - 2
    strides, pads, dilations = (_each(about[name], axes) for name in ("stride", "padding", "dilation"))
    more = {"strides": strides, "pads": pads * 2, "dilations": dilations, "group": about["groups"]}
    return op.onnx("Conv", value, weight, bias, **more)


def _each(values: Any, axes: int) -> list[int]:
    """A number for each axis, where one may stand for all."""
    found = [int(x) for x in values] if isinstance(values, (list, tuple)) else [int(values)]
    return found * axes if len(found) == 1 else found


def _norm(op: _Operation, *, running_mean: Any, running_var: Any, **about: Any) -> str:
    value = about["input"]
    mean, variance = op.program.numbers(running_mean), op.program.numbers(running_var)
    factor, shift = (op.program.numbers(about[name]) for name in ("weight", "bias"))
    if mean is None or variance is None or about.get("training"):
        return op.onnx("BatchNormalization", value)
    by = (1.0 if factor is None else factor) / np.sqrt(variance + about["eps"])
    plus = (0.0 if shift is None else shift) - mean * by
    channels = (-1, *[1] * (len(op.shape(value)) - 2))
    return op.onnx("Add", op.onnx("Mul", value, by.reshape(channels)), plus.reshape(channels))


def _average(op: _Operation, *, kernel_size: Any, **about: Any) -> str | None:
    value = about["self"]
    axes = len(op.shape(value)) - 2
    kernel, pads = _each(kernel_size, axes), _each(about["padding"], axes)
    strides = _each(about["stride"], axes) if about["stride"] else kernel
    divisor = about.get("divisor_override")
    if divisor is not None and about["ceil_mode"]:
        return None
    pool = op.onnx(
        "AveragePool",
        value,
        kernel_shape=kernel,
        strides=strides,
        pads=pads * 2,
        ceil_mode=about["ceil_mode"],
        count_include_pad=about["count_include_pad"] or divisor is not None,
    )
    return pool if divisor is None else op.onnx("Mul", pool, float(np.prod(kernel)) / divisor)


def _adaptive(op: _Operation, *, output_size: Any, **about: Any) -> str | None:
    made = about["self"]
    sizes = op.shape(made)
    wanted = _each(output_size, 1 if op.operation.endswith("1d") else 2)
    # A matrix of means from the right for the last axis, from the left for the one before.
    made = op.onnx("MatMul", made, _means(wanted[-1], sizes[-1]).T)
    return made if len(wanted) == 1 else op.onnx("MatMul", _means(wanted[0], sizes[-2]), made)


def _means(windows: int, size: int) -> NDArray[np.float64]:
    """The means of windows over an axis, which may overlap, as a matrix."""
    means = np.zeros((windows, size))
    for i in range(windows):
        begin, end = i * size // windows, -(-(i + 1) * size // windows)
        means[i, begin:end] = 1 / (end - begin)
    return means


def _reduced(operator: str) -> Callable[..., str]:
    def write(op: _Operation, *, dim: Any = None, keepdim: bool = False, **about: Any) -> str:
        axes = [] if dim is None else _each(dim, 1)
        inputs = (about["self"], np.array(axes)) if axes else (about["self"],)
        return op.onnx(operator, *inputs, keepdims=keepdim)

    return write


def _addmm(op: _Operation, *, mat1: Any, mat2: Any, beta: float, alpha: float, **about: Any) -> str:
    product = _scaled(op, op.onnx("MatMul", mat1, mat2), alpha)
    return op.onnx("Add", product, _scaled(op, about["self"], beta))


def _product(op: _Operation, **about: Any) -> str:
    return op.onnx("MatMul", *list(about.values())[:2])


def _linear(op: _Operation, *, weight: Any, bias: Any, **about: Any) -> str | None:
    weights = op.program.numbers(weight)
    if weights is None:
        return None
    made = op.onnx("MatMul", about["input"], weights.T)
    return made if bias is None else op.onnx("Add", made, bias)


def _sum(operator: str, *, swapped: bool = False) -> Callable[..., str]:
    def write(op: _Operation, *, other: Any, alpha: float = 1, **about: Any) -> str:
        first, second = (other, about["self"]) if swapped else (about["self"], other)
        return op.onnx(operator, first, _scaled(op, second, alpha))

    return write


def _times(operator: str) -> Callable[..., str | None]:
    def write(op: _Operation, *, other: Any, rounding_mode: Any = None, **about: Any) -> str | None:
        return None if rounding_mode is not None else op.onnx(operator, about["self"], other)

    return write


def _power(op: _Operation, *, exponent: Any, **about: Any) -> str | None:
    return None if isinstance(exponent, op.program.torch.fx.Node) else op.onnx("Pow", about["self"], exponent)


def _gelu(op: _Operation, *, approximate: str = "none", **about: Any) -> str:
    return op.onnx("Gelu", about["self"], approximate=approximate)


def _elu(op: _Operation, *, alpha: float, scale: float, input_scale: float, **about: Any) -> str | None:
    if input_scale != 1:
        return None
    return op.onnx("Selu", about["self"], alpha=float(alpha), gamma=float(scale))


def _celu(op: _Operation, *, alpha: float, **about: Any) -> Any:
    return _scaled(op, op.onnx("Elu", _scaled(op, about["self"], 1 / alpha)), alpha)


def _leaky(op: _Operation, *, negative_slope: float, **about: Any) -> str:
    return op.onnx("LeakyRelu", about["self"], alpha=float(negative_slope))


def _prelu(op: _Operation, *, weight: Any, **about: Any) -> str:
    return op.onnx("PRelu", about["self"], weight)


def _clipped(op: _Operation, **about: Any) -> str:
    low, high = (about.get(name, about.get(f"{name}_val")) for name in ("min", "max"))
    return op.onnx("Clip", about["self"], low, high)


def _hard_sigmoid(op: _Operation, **about: Any) -> str:
    return op.onnx("HardSigmoid", about["self"], alpha=1 / 6, beta=0.5)


def _softplus(op: _Operation, *, beta: float, **about: Any) -> Any:
    return _scaled(op, op.onnx("Softplus", _scaled(op, about["self"], beta)), 1 / beta)


def _permuted(op: _Operation, *, dims: Any, **about: Any) -> str:
    rank = len(op.shape())
    return op.onnx("Transpose", about["self"], perm=[d % rank for d in dims])


def _expanded(op: _Operation, **about: Any) -> str:
    return op.onnx("Expand", about["self"], np.array(op.shape()))


def _slice(op: _Operation, *, dim: int, start: Any, end: Any, step: int, **about: Any) -> str:
    begin, stop = (0 if start is None else start), (2**62 if end is None else min(end, 2**62))
    return op.onnx("Slice", about["self"], *(np.array([x]) for x in (begin, stop, dim, step)))


def _selected(op: _Operation, *, dim: int, index: int, **about: Any) -> str:
    return op.onnx("Gather", about["self"], np.array(index), axis=dim)


def _joined(op: _Operation, *, tensors: Any, dim: int = 0) -> str:
    return op.onnx("Concat", *tensors, axis=dim)


def _split(op: _Operation, *, split_sizes: Any, dim: int = 0, **about: Any) -> str:
    return op.onnx("Split", about["self"], np.array(split_sizes), outputs=len(split_sizes), axis=dim)


def _padded(op: _Operation, *, pad: Any, value: float = 0, **about: Any) -> str | None:
    if min(pad) < 0:
        return None
    rank = len(op.shape())
    # Pairs from the last axis on, where ONNX has all begins and then all ends.
    begins, ends = [0] * rank, [0] * rank
    for k, (begin, end) in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        begins[rank - 1 - k], ends[rank - 1 - k] = begin, end
    return op.onnx("Pad", about["self"], np.array(begins + ends), float(value))


def _at_end(operator: str) -> Callable[..., str]:
    def write(op: _Operation, *, dim: Any, **about: Any) -> str:
        return op.onnx(operator, about["self"], axis=-1 if dim is None else dim)

    return write


def _copied(op: _Operation, *, dtype: Any = None, **about: Any) -> str:
    whole = dtype is not None and not dtype.is_floating_point
    return op.onnx("Cast", about["self"], to=7) if whole else op.program.name(about["self"])


#: How operations are written, by their names; none where one cannot be.
_WRITERS: dict[str, Callable[..., Any]] = {
    "_adaptive_avg_pool2d": _adaptive,
    "_log_softmax": _at_end("LogSoftmax"),
    "_native_batch_norm_legit_no_training": _norm,
    "_prelu_kernel": _prelu,
    "_softmax": _at_end("Softmax"),
    "_to_copy": _copied,
    "adaptive_avg_pool1d": _adaptive,
    "add": _sum("Add"),
    "addmm": _addmm,
    "argmax": _at_end("ArgMax"),
    "avg_pool1d": _average,
    "avg_pool2d": _average,
    "avg_pool3d": _average,
    "bmm": _product,
    "cat": _joined,
    "celu": _celu,
    "clamp": _clipped,
    "constant_pad_nd": _padded,
    "convolution": _convolution,
    "div": _times("Div"),
    "elu": _elu,
    "expand": _expanded,
    "gelu": _gelu,
    "hardsigmoid": _hard_sigmoid,
    "hardtanh": _clipped,
    "leaky_relu": _leaky,
    "linear": _linear,
    "matmul": _product,
    "mean": _reduced("ReduceMean"),
    "mm": _product,
    "mul": _times("Mul"),
    "native_batch_norm": _norm,
    "permute": _permuted,
    "pow": _power,
    "rsub": _sum("Sub", swapped=True),
    "select": _selected,
    "slice": _slice,
    "softplus": _softplus,
    "split_with_sizes": _split,
    "sub": _sum("Sub"),
    "sum": _reduced("ReduceSum"),
}
