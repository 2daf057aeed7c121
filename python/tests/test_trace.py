"""What a traced function computes is what NumPy computes, in value and in shape."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sudare as sd
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreter import evaluate
from numpy.typing import NDArray
from sudare._trace import Expression, Graph, constant_name, trace

Floats = NDArray[np.float64]
Function = Callable[..., Any]
rng = np.random.default_rng(1)
A, B, D = (rng.uniform(-1, 1, s) for s in [(4, 3), (3, 5), (4, 3)])
V, W = rng.uniform(-1, 1, 3), rng.uniform(-1, 1, 4)
ARRAYS = {"A": A, "B": B, "D": D, "V": V, "W": W}
P, Q = rng.uniform(-1, 1, (5, 4)), rng.uniform(-1, 1, 4)
SQUARE = rng.uniform(-1, 1, (4, 4))


def shape_of(function: Function, names: list[str]) -> tuple[int, ...]:
    """The shape that the traced result claims."""
    shapes = []

    def watch(**operands: Expression) -> Any:
        result = function(**operands)
        shapes.append(result.shape)
        return result

    trace(watch, {n: sd.spec(ARRAYS[n].shape) for n in names})
    return tuple(shapes[0])


def check(function: Function) -> None:
    names = list(function.__code__.co_varnames[: function.__code__.co_argcount])
    text = trace(function, {n: sd.spec(ARRAYS[n].shape) for n in names})
    plain = {constant_name(c): c for c in constants}
    inputs = {n: a if a.ndim == 2 else a.reshape(-1, 1) for n, a in ARRAYS.items()}
    expected = np.asarray(function(**{n: ARRAYS[n] for n in names}))
    assert shape_of(function, names) == expected.shape
    got = evaluate(text, inputs | plain)
    np.testing.assert_allclose(got.reshape(expected.shape), expected, atol=1e-12)


# Every form that a plain matrix takes below.
constants = [P, Q.reshape(1, 4), Q.reshape(4, 1), SQUARE, np.ascontiguousarray(np.broadcast_to(V, (4, 3)))]
BESIDE = np.vstack([np.zeros((4, 3)), np.ones((2, 3))])
constants += [np.eye(3), np.eye(4, 3), BESIDE]

FUNCTIONS: list[Function] = [
    lambda A, B: A @ B,
    lambda A, B: np.matmul(A, B),
    lambda A, B: np.dot(A, B),
    lambda A, B: A.dot(B),
    lambda A, D: A + D,
    lambda A, D: np.add(A, D) - np.subtract(D, A) * 2,
    lambda A, D: A * D,
    lambda A: -A,
    lambda A: np.negative(A) / 4,
    lambda A: 2 * A + 1,
    lambda A: 3 - A,
    lambda A: A - 3.5,
    lambda A: A**2,
    lambda A: np.square(A) + np.float32(0.5) * A,
    lambda A: +A,
    lambda A: A.T,
    lambda A: np.transpose(A),
    lambda A: A.transpose(1, 0),
    lambda A: np.transpose(A, (0, 1)),
    lambda A, D: A.T @ D,
    lambda A, B: (A @ B).T,
    lambda A: A.sum(),
    lambda A: A.sum(0),
    lambda A: A.sum(axis=1),
    lambda A: A.sum(-1),
    lambda A: np.sum(A, axis=-2),
    lambda A: np.sum(A, axis=(0, 1)),
    lambda A: A.sum(axis=1, keepdims=True),
    lambda A: np.add.reduce(A),
    lambda A: np.mean(A, axis=0),
    lambda A: A.mean(),
    lambda A: np.mean(A, 1, keepdims=True) * 3,
    lambda A, V: A @ V,
    lambda A, W: W @ A,
    lambda W, A, V: W @ A @ V,
    lambda V: V @ V,
    lambda V: V * V + V,
    lambda V: V.sum(),
    lambda A, V: A.sum(0) + V,
    lambda A, V: V - A.sum(0),
    lambda A, W: A.sum(1) * W,
    lambda A: A.sum(0) @ A.T,
    lambda A: A @ A.sum(0),
    lambda A: A.sum(0).T,
    lambda A, B: P @ (A @ B),
    lambda A: SQUARE @ A,
    lambda A: np.matmul(SQUARE, A),
    lambda A: A.T @ SQUARE,
    lambda A: Q @ A,
    lambda A: A.T @ Q,
    lambda A: A + V,
    lambda A: V - A,
    lambda A: np.multiply(V, A),
    lambda A, D: np.concatenate([A, D]),
    lambda A, D: np.concatenate([A, D], axis=1),
    lambda A, D: np.concatenate((A, D, A), axis=-1),
    lambda A, D: np.concatenate([A, A]) @ np.ones((3, 1)) * 0 + np.concatenate([D, A]).sum(1, keepdims=True),
    lambda V: np.concatenate([V, V]),
    lambda A: np.concatenate([A.sum(0), A.sum(0)]),
    lambda A, D: np.concatenate([A, D], axis=None),
    lambda A: np.concatenate([A, np.ones((2, 3))]),
    lambda A: A - A.mean(axis=0),
    lambda A, V: A @ A.T @ A + V,
    lambda A, V: V[None, :] - A,
    lambda A, W: A * W[:, None],
    lambda V, W: V * W[:, None],
    lambda A: A * A.sum(),
    lambda A: A[0],
    lambda A: A[1:3],
    lambda A: A[::-2],
    lambda A: A[:, 1],
    lambda A: A[..., -1],
    lambda A: A[2, 1],
    lambda V: V[1:],
    lambda V: V[-1],
    lambda A: sum(A),
    lambda A: A.reshape(12),
    lambda A: A.reshape(3, 4),
    lambda A: np.reshape(A, (2, -1)),
    lambda A: A.reshape(6, 2),
    lambda A: A.ravel(),
    lambda V: V.reshape(3, 1) @ V.reshape(1, 3),
    lambda A, D: np.vstack([A, D, A[0]]),
    lambda A, D: np.hstack([A, D[:, :1]]),
    lambda V: np.hstack([V, V]),
    lambda V: np.stack([V, 2 * V]),
    lambda V: np.stack([V, V * V], axis=1),
    lambda V: np.stack([V.sum(), V[0]]),
    lambda V: np.column_stack([V, V]),
    lambda V: np.expand_dims(V, 1),
    lambda A: np.squeeze(A.sum(0, keepdims=True)),
    lambda V: np.broadcast_to(V, (2, 3)),
    lambda A: A**3,
    lambda A: np.power(A, 5),
    lambda A: np.polyval([1.0, -2, 0, 3, 0.5], A),
    lambda A: np.trace(A),
    lambda A: np.diag(A),
    lambda V: np.diag(V),
    lambda A: A.diagonal(),
    lambda A, D: np.inner(A, D),
    lambda V: np.inner(V, V),
    lambda V, W: np.outer(V, W),
    lambda A: np.var(A),
    lambda A: A.var(0, ddof=1),
    lambda A: np.var(A, axis=1, keepdims=True),
    lambda A: A / np.full((4, 3), 2.0),
    lambda A: np.flip(A),
    lambda A: np.flipud(A) - np.flip(A, 1),
    lambda V: np.roll(V, -1),
    lambda A: np.roll(A, 5, axis=0) + np.roll(A, 2),
    lambda V: np.tile(V, (2, 2)),
    lambda A: np.tile(A, 2),
    lambda A: np.tile(A.sum(), 2),
    lambda A: np.tile(A.sum(), (1, 3)),
    lambda A: np.tile(A.sum(), 2).var(axis=0),
    lambda A: np.average(A, axis=1),
    lambda A: np.average(A, axis=0, weights=[1, 2, 1, 4]),
    lambda A: np.swapaxes(A, 0, 1),
    lambda A: np.split(A, 2)[1] - np.array_split(A, 3)[0],
    lambda V, W: np.append(V, W),
    lambda A: np.diff(A, axis=0),
    lambda V: np.diff(V, 2),
    lambda V: np.cumsum(V),
    lambda A: np.cumsum(A, axis=1),
    lambda A: np.triu(A),
    lambda V: np.atleast_2d(V) + np.zeros_like(V),
    lambda A, B, D: np.linalg.multi_dot([A.T, D, B]),
    lambda A, D: np.linalg.matrix_power(A.T @ D, 3),
    lambda A, B: np.tensordot(A, B, 1),
    lambda A, D: np.tensordot(A, D),
    lambda A: A.copy().flatten(),
    lambda A: np.sum(A, 0, None),
]
ORDERED = np.repeat([[1.0], [2], [1], [4]], 3, axis=1)
constants += [
    ORDERED,
    ORDERED[:, :1],
    np.tril(np.ones((3, 3))),
    np.tril(np.ones((3, 3))).T,
    np.triu(np.ones((4, 3))),
]
constants += [np.zeros((1, 3))]
constants += [np.full((4, 3), 1 / 2)]
constants += [np.ones((3, 1))]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_numpy_agrees(function: Function) -> None:
    check(function)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from(["add", "sub", "mul", "neg", "scale", "shift", "t", "gram", "mean"]), max_size=8)
)
def test_random_expressions(steps: list[str]) -> None:
    def function(A: Any, D: Any) -> Any:
        x = A + D
        for step in steps:
            x = {
                "add": lambda x: x + x,
                "sub": lambda x: 1 - x,
                "mul": lambda x: x * (x - 0.5),
                "neg": lambda x: -x,
                "scale": lambda x: 0.25 * x,
                "shift": lambda x: x + 0.125,
                "t": lambda x: x.T,
                "gram": lambda x: x @ x.T / 16,
                "mean": lambda x: x - (x.mean(0, keepdims=True).T @ x.mean(1, keepdims=True).T).T,
            }[step](x)
        return x

    check(function)


def test_one_input_is_one_node() -> None:
    text = json.loads(trace(lambda A: A @ A.T + A @ A.T, {"A": sd.spec((3, 3))}))
    assert [n["op"] for n in text["nodes"]].count("input") == 1


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda A, B: B @ A, sd.ShapeError),
        (lambda A, B: A + B, sd.ShapeError),
        (lambda A, V: A @ V[None, :], sd.ShapeError),
        (lambda A, W: A @ W, sd.ShapeError),
        (lambda A: A @ 2, sd.ShapeError),
        (lambda A: 2 @ A, sd.ShapeError),
        (lambda A: A + np.ones((2, 2)), sd.ShapeError),
        (lambda A: A + np.array([["x"]]), sd.UnsupportedError),
        (lambda A: A * 1j, sd.UnsupportedError),
        (lambda A: A * float("nan"), sd.InputError),
        (lambda A: A / A, sd.UnsupportedError),
        (lambda A: 1 / A, sd.UnsupportedError),
        (lambda A: np.divide(1.0, A), sd.UnsupportedError),
        (lambda A: A / 0, ZeroDivisionError),
        (lambda A: A**-1, sd.UnsupportedError),
        (lambda A: A**0.5, sd.UnsupportedError),
        (lambda A: 2**A, sd.UnsupportedError),
        (lambda A: np.exp(A), sd.UnsupportedError),
        (lambda A: np.linalg.inv(A), sd.UnsupportedError),
        (lambda A: np.add(A, A, out=np.ones((4, 3))), sd.UnsupportedError),
        (lambda A: np.sum(A, dtype=np.float32), sd.UnsupportedError),
        (lambda A: A.sum(2), sd.ShapeError),
        (lambda A: A.transpose(0, 0), sd.ShapeError),
        (lambda A, B: np.concatenate([A, B]), sd.ShapeError),
        (lambda A: np.asarray(A), sd.UnsupportedError),
        (lambda A: np.array([A, A]), sd.UnsupportedError),
        (lambda A: A.T if A else A, sd.UnsupportedError),
        (lambda A: A == A, sd.UnsupportedError),
        (lambda A: A > 1, sd.UnsupportedError),
        (lambda A: np.ones((4, 3)) == A, sd.UnsupportedError),
        (lambda A: A[4], sd.ShapeError),
        (lambda A: A[0, 0, 0], sd.ShapeError),
        (lambda A: A[None], sd.ShapeError),
        (lambda A: A[[9]], sd.ShapeError),
        (lambda A: A[2:2], sd.PlanError),
        (lambda A: A[np.ones((4, 3), bool)], sd.UnsupportedError),
        (lambda A: A.reshape(5, 2), sd.ShapeError),
        (lambda A: np.std(A), sd.UnsupportedError),
        (lambda A: np.stack([A, A]), sd.ShapeError),
        (lambda A: float(A), sd.UnsupportedError),
        (lambda A: abs(A), sd.UnsupportedError),
        (lambda A: np.einsum("ij->i", A), sd.UnsupportedError),
        (lambda A: np.linalg.norm(A), sd.UnsupportedError),
        (lambda A: A.max(), AttributeError),
        (lambda A: A * 10**400, sd.InputError),
        (lambda A: np.split(A, 3), sd.ShapeError),
        (lambda A: np.tile(A, (2, 2, 2)), sd.ShapeError),
        (lambda A: np.cumsum(A, 2), sd.ShapeError),
        (lambda A: None, sd.PlanError),
        (lambda A: (A, 3.0), sd.PlanError),
    ],
)
def test_refusals(function: Function, error: type[Exception]) -> None:
    names = list(function.__code__.co_varnames[: function.__code__.co_argcount])
    with pytest.raises(error):
        trace(function, {n: sd.spec(ARRAYS[n].shape) for n in names})


@pytest.mark.parametrize(
    ("function", "remedy"),
    [
        (lambda A: A[np.ones((4, 3), bool)], "numpy.where"),
        (lambda A: A.max(), "sudare.greater"),
        (lambda A: np.linalg.inv(A), r"decrypt\(x\)"),
        (lambda A: np.cov(A), "sudare.table"),
    ],
)
def test_refusals_say_what_to_write(function: Function, remedy: str) -> None:
    with pytest.raises((sd.UnsupportedError, AttributeError), match=remedy):
        trace(function, {"A": sd.spec((4, 3))})


def test_attributes() -> None:
    def watch(A: Any, V: Any) -> Any:
        assert (A.shape, A.ndim, A.size, len(A), A.dtype) == ((4, 3), 2, 12, 4, np.float64)
        assert (np.shape(A), np.ndim(A), np.size(A), np.size(A, 1)) == ((4, 3), 2, 12, 3)
        assert (V.shape, V.ndim, V.size, len(V)) == ((3,), 1, 3, 3)
        total = A.sum()
        assert (total.shape, total.ndim, total.size) == ((), 0, 1)
        with pytest.raises(TypeError):
            len(total)
        assert repr(A) == "<sudare expression (4, 3)>"
        with pytest.raises(TypeError):
            hash(A)
        return A @ V

    trace(watch, {"A": sd.spec((4, 3)), "V": sd.spec(3)})


@pytest.mark.parametrize("shape", [(), (0, 1), (2, 3, 4), (-1, 2)])
def test_bad_shapes(shape: tuple[int, ...]) -> None:
    with pytest.raises(sd.ShapeError):
        sd.spec(shape)


@pytest.mark.parametrize("bound", [0, -1, float("nan"), float("inf")])
def test_bad_bounds(bound: float) -> None:
    with pytest.raises(sd.InputError):
        sd.spec((2, 2), max_abs=bound)


def test_specs_are_needed() -> None:
    with pytest.raises(sd.PlanError, match=r"sudare\.spec"):
        trace(lambda A: A, {"A": np.ones((2, 2))})  # type: ignore[dict-item]


def test_constants_have_names() -> None:
    graph = Graph()
    first, second = graph.lift(np.eye(2)), graph.lift(np.eye(2))
    assert first == second
    assert graph.lift(2 * np.eye(2)) != first
    # What nothing encrypted meets is no input.
    assert not graph.inputs


def test_functions_are_polynomials_with_bounds() -> None:
    fitted = sd.fit(np.tanh, (-2, 1.5), degree=13)
    text = trace(lambda A: A.apply(fitted), {"A": sd.spec((4, 3))})
    assert np.abs(evaluate(text, {"A": A}) - np.tanh(A)).max() <= fitted.error * (1 + 1e-9)
    last = json.loads(text)["nodes"][-1]
    assert (last["op"], last["low"], last["high"], last["error"]) == ("polynomial", -2, 1.5, fitted.error)


def test_what_is_done_to_plain_matrices_is_done_in_numpy() -> None:
    def function(A: Any, P: Any, v: Any) -> Any:
        return (A @ P.T + v) * v[0] - P[:4, :3]

    shapes = {"A": A, "P": rng.uniform(-1, 1, (5, 3)), "v": rng.uniform(-1, 1, 5)}
    with pytest.raises(sd.ShapeError):
        trace(function, {n: sd.spec(x.shape, plain=n != "A") for n, x in shapes.items()})
    text = json.loads(
        trace(
            lambda A, P, v: A @ P.T + v * 2,
            {n: sd.spec(x.shape, plain=n != "A") for n, x in shapes.items()},
        )
    )
    assert [n["op"] for n in text["nodes"]] == ["input", "input", "matmul", "input", "add"]
    assert [(i["name"], i["rows"], i["cols"], i["max_abs"]) for i in text["inputs"]] == [
        ("A", 4, 3, 1),
        ("P (2)", 3, 5, 1),
        ("v (5)", 4, 5, 2),
    ]
