"""Encrypted integers against NumPy: products, expressions, batches, real data, and what is refused."""

from __future__ import annotations

import inspect
import math
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sudare as sd
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from test_table import real_data


def product(a: NDArray[np.int64], b: NDArray[np.int64], left: int, right: int) -> NDArray[np.int64]:
    A, B = sd.spec(a.shape, max_abs=left, dtype=int), sd.spec(b.shape, max_abs=right, dtype=int)
    plan = sd.plan(lambda A, B: A @ B, A=A, B=B)
    client = plan.client(threads=1)
    found: NDArray[np.int64] = client.decrypt(client.encrypt(a, "A") @ client.encrypt(b, "B"))
    return found


@settings(max_examples=8, deadline=None)
@given(st.tuples(*[st.integers(1, 24)] * 3), st.sampled_from([1, 100, 10**6]), st.integers(0, 2**32 - 1))
def test_any_shape(sides: tuple[int, int, int], bound: int, seed: int) -> None:
    m, k, n = sides
    rng = np.random.default_rng(seed)
    a, b = rng.integers(-bound, bound + 1, (m, k)), rng.integers(-bound, bound + 1, (k, n))
    found = product(a, b, bound, bound)
    assert found.dtype == np.int64
    assert np.array_equal(found, a @ b)


def test_counts_of_real_patients() -> None:
    # Which of 30 measurements are above their median, for 569 patients: how often two are together.
    x = real_data("breast_cancer.csv")
    high = (x > np.median(x, axis=0)).astype(np.int64)
    assert np.array_equal(product(high.T.copy(), high, 1, 1), high.T @ high)


def test_results_beyond_64_bits() -> None:
    plan = sd.plan(
        lambda A, B: A @ B,
        A=sd.spec((2, 3), max_abs=2**62, dtype=int),
        B=sd.spec((3, 2), max_abs=2**40, dtype=int),
    )
    a = np.array([[2**62, -(2**62), 5], [1, 2, 3]])
    b = np.array([[2**40, 1], [-(2**40), 2], [7, -3]])
    client = plan.client()
    found = client.decrypt(client.encrypt(a, "A") @ client.encrypt(b, "B"))
    assert found.dtype == object
    assert (found == a.astype(object) @ b.astype(object)).all()


@pytest.mark.parametrize(("left", "right"), [((4, 3), (3,)), ((3,), (3, 2)), ((3,), (3,)), ((1, 3), (3, 1))])
def test_vectors_are_products_as_numpy_has_them(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    a, b = rng.integers(-9, 10, left), rng.integers(-9, 10, right)
    plan = sd.plan(
        lambda A, B: A @ B, A=sd.spec(left, max_abs=9, dtype=int), B=sd.spec(right, max_abs=9, dtype=int)
    )
    plan = sd.Plan.from_json(plan.to_json())
    assert all(s.integer and s.max_abs == 9 for s in plan.inputs.values())
    client = plan.client()
    x, y = client.encrypt(a, "A"), client.encrypt(b, "B")
    z = x @ y
    found = client.decrypt(z)
    assert (x.shape, y.shape, z.shape) == (left, right, np.shape(a @ b))
    assert np.array_equal(found, a @ b)
    with pytest.raises(sd.ShapeError, match="and the plan says"):
        client.encrypt(np.ones((2, 7), dtype=int), "A")


def test_transposes_are_factors() -> None:
    rng = np.random.default_rng(6)
    a, b = rng.integers(-9, 10, (4, 3)), rng.integers(-9, 10, (5, 4))
    A, B = sd.spec(a.shape, max_abs=9, dtype=int), sd.spec(b.shape, max_abs=9, dtype=int)
    client = sd.Client(sd.plan(lambda A, B: A.T @ B.T, A=A, B=B))
    x, y = client.encrypt(a, "A"), client.encrypt(b, "B")
    assert np.array_equal(client.decrypt(x.T @ y.T), a.T @ b.T)
    with pytest.raises(sd.ShapeError):
        x @ y.T


def integers(rng: np.random.Generator, shape: tuple[int, ...], bound: int) -> NDArray[Any]:
    """Python's integers, often at their bound."""
    edge = [rng.random() < 0.4 for _ in range(math.prod(shape))]
    flat = [bound * (int(rng.integers(0, 3)) - 1) if at else pick(rng, bound) for at in edge]
    return np.array(flat, dtype=object).reshape(shape)


def pick(rng: np.random.Generator, bound: int) -> int:
    return int.from_bytes(rng.bytes(16), "little") % (2 * bound + 1) - bound


#: What is written with square matrices A and B, encrypted, W, plain, and a vector v.
EXPRESSIONS: list[Callable[..., Any]] = [
    lambda A, B: 2 * (A @ B) + 1,
    lambda A, B, W: A @ B - B.T @ A.T + W,
    lambda A, B, W: W @ A - 3 * B * W,
    lambda A, B, W: A * B - A + (A * W).T,
    lambda A, B, W: (A + B) @ (A - W) + 7,
    lambda A, v: A @ v - v,
    lambda A, W, v: v @ (A + W) * 5,
    lambda A, B, v: (A * B).sum(axis=0) + v,
    lambda A, B, W, v: np.sum(A @ B, axis=1) - np.dot(W, v),
    lambda v: v @ v,
    lambda W, v: 2 * np.sum(v * v) - (W @ v).sum(),
    lambda A, B, W: (A @ B) * W + A**2,
    lambda A, B: B.sum() - A.sum(),
    lambda A, B: A[1:] @ B[:, ::-1],
    lambda A, B: (A @ B + 1)[0] - 2,
    lambda A, B: np.vstack([A @ B, A[:1] - 3, B * 2]),
    lambda A, B, v: np.hstack([A * B, v[:, None]]),
    lambda A, B: np.concatenate([A, np.ones((2, 3), int), B[::2]]),
    lambda v: np.stack([v, 2 * v, v[::-1]], axis=1),
    lambda A, B, v: A @ B + v[:, None],
    lambda A, v: v[:, None] * v + A,
    lambda A, v: np.outer(v, A),
    lambda A, B: (A * B)[:2].sum(axis=0)[1:],
    lambda A, B, v: (A * B).sum(axis=1) + np.broadcast_to(v, (3, 3)),
    lambda A, B: (A * B.T).sum(),
    lambda A, B: A[:2].T + np.sum(B[0] * A[:, 1]),
    lambda A: np.trace(A),
    lambda A, B: np.diag((A * B).sum(axis=0)),
    lambda A, B, W: (A * B).sum() * W + A,
    lambda A: np.diag(A.reshape(1, 9)[:, :4].reshape(2, 2)),
    lambda A, B: (A @ B)[1:, :2] - np.trace(A) * 2,
]


@pytest.mark.parametrize("at", range(len(EXPRESSIONS)))
@pytest.mark.parametrize("bound", [1, 999, 2**36])
def test_expressions_are_numpys(at: int, bound: int) -> None:
    function, rng, n = EXPRESSIONS[at], np.random.default_rng(at), 3
    shapes = {name: (n,) if name == "v" else (n, n) for name in inspect.signature(function).parameters}
    plain = {name: integers(rng, shape, bound) for name, shape in shapes.items()}
    specs: dict[str, Any] = {
        name: sd.spec(shape, max_abs=bound, plain=name == "W", dtype=int) for name, shape in shapes.items()
    }
    plan = sd.Plan.from_json(sd.plan(function, **specs).to_json())
    client = plan.client(threads=1)
    others, server = client.public(), plan.keyless(threads=1)
    values = {}
    for name, x in plain.items():
        if name == "W":
            values[name] = server.plain(x, name)
        else:
            values[name] = server.bind((client if rng.random() < 0.5 else others).encrypt(x, name))
    result, wanted = function(**values), np.asarray(function(**plain))
    found = client.decrypt(result)
    assert found.shape == wanted.shape == result.shape
    assert (found == wanted).all()
    assert found.dtype == result.dtype
    largest = plan._core.largest_integer
    assert largest is not None
    assert found.dtype == (np.int64 if largest < 2**63 else object)


def test_batches_with_a_plain_input() -> None:
    rng = np.random.default_rng(8)
    x, y, w = (
        rng.integers(-9, 10, (5, 3, 4)),
        rng.integers(-9, 10, (5, 4, 2)),
        rng.integers(-9, 10, (5, 3, 2)),
    )
    shapes = {"X": (3, 4), "Y": (4, 2), "W": (3, 2)}
    specs: dict[str, Any] = {
        name: sd.spec(shape, max_abs=9, plain=name == "W", dtype=int) for name, shape in shapes.items()
    }
    plan = sd.plan(lambda X, Y, W: X @ Y - W, batch=5, **specs)
    client = plan.client()
    server = client.server()
    found = client.decrypt(client.encrypt(x, "X") @ client.encrypt(y, "Y") - server.plain(w, "W"))
    assert np.array_equal(found, x @ y - w)


def test_plain_matrices_in_other_forms_are_given_as_they_are() -> None:
    a, w = np.arange(6).reshape(2, 3), np.arange(-4, 5).reshape(3, 3)
    plan = sd.plan(
        lambda A, W: np.vstack([A, W[:2]]) @ W.T,
        A=sd.spec((2, 3), max_abs=9, dtype=int),
        W=sd.spec((3, 3), max_abs=9, plain=True, dtype=int),
    )
    client = plan.client()
    server = client.server()
    x: Any = client.encrypt(a, "A")
    wanted = np.vstack([a, w[:2]]) @ w.T
    both: list[Any] = [w, server.plain(w, "W")]
    for known in both:
        found: Any = np.vstack([x, known[:2]]) @ known.T
        assert np.array_equal(client.decrypt(found), wanted)


def test_weights_that_the_function_brings_along() -> None:
    rng, weights = np.random.default_rng(9), np.arange(-3, 3).reshape(2, 3)
    x = rng.integers(-9, 10, (3, 4))
    plan = sd.plan(lambda X: weights @ X + 1, X=sd.spec((3, 4), max_abs=9, dtype=int))
    client = plan.client()
    encrypted: Any = client.encrypt(x)
    assert np.array_equal(client.decrypt(weights @ encrypted + 1), weights @ x + 1)


def test_integers_over_64_bits_go_in_and_come_out() -> None:
    plan = sd.plan(
        lambda A, W: A * W - A,
        A=sd.spec(2, max_abs=2**90, dtype=int),
        W=sd.spec(2, max_abs=2**20, plain=True, dtype=int),
    )
    client, a, w = plan.client(), [2**90, -(2**90) + 5], [-(2**20), 3]
    server = client.server()
    found = client.decrypt(client.encrypt(a, "A") * server.plain(w, "W") - client.encrypt(a, "A"))
    assert list(found) == [p * q - p for p, q in zip(a, w, strict=True)]
    with pytest.raises(sd.InputError):
        client.encrypt([2**90 + 1, 0], "A")
    with pytest.raises(sd.InputError, match="128 bits"):
        client.encrypt([2**200, 0], "A")
    with pytest.raises(sd.UnsupportedError, match="rounded"):
        client.encrypt([2**90, 0.5], "A")


def test_what_is_not_exact_says_what_to_write() -> None:
    A = B = sd.spec((3, 3), max_abs=9, dtype=int)
    half, large = np.full((3, 3), 0.5), np.full((3, 3), 2.0**53)
    refused: list[tuple[Callable[..., Any], str]] = [
        (lambda A, B: A @ B @ A, "second plan"),
        (lambda A, B: A * B * A, "multiplies once"),
        (lambda A, B: (A @ B) / 2, "divide after decryption"),
        (lambda A, B: np.stack([(A * B).sum(axis=0), A[0]]), "after decryption"),
        (lambda A, B: (A + B).mean(axis=0), "divide after decryption"),
        (lambda A, B: A @ B + 2**60, "plain input"),
        (lambda A, B: A @ B + half, r"no integer below 2\^53 at \(0, 0\)"),
        (lambda A, B: A @ B + large, "server.plain"),
    ]
    for function, remedy in refused:
        with pytest.raises((sd.PlanError, sd.InputError), match=remedy):
            sd.plan(function, A=A, B=B)


def test_prices_are_no_part_of_a_plan() -> None:
    A = sd.spec((16, 16), max_abs=1023, dtype=int)
    plan = sd.plan(lambda A, B: A @ B, A=A, B=A)
    text = re.sub(r'"seconds": [^,\n]*', '"seconds": 7.5', plan.to_json())
    other = sd.Plan.from_json(text)
    assert other.summary["seconds"] == 7.5
    assert other == plan
    assert other.hash == plan.hash
    client = sd.Client(plan)
    x = sd.Encrypted.from_bytes(other, client.encrypt(np.ones((16, 16), dtype=int), "A").to_bytes())
    assert x.plan == plan


def test_a_file_says_nothing_that_does_not_follow() -> None:
    A = sd.spec((16, 16), max_abs=1023, dtype=int)
    text = sd.plan(lambda A, B: A @ B, A=A, B=A).to_json()
    edits = [
        ('"log_n": 12', '"log_n": 9'),
        ('"secret": "Ternary"', '"secret": {"FixedWeight": {"weight": 1}}'),
        ('"security": "Bits128"', '"security": "Insecure"'),
        ('"integers": 1023', '"integers": 1024'),
        ('"rows": 16', '"rows": 15'),
    ]
    for old, new in edits:
        assert old in text
        with pytest.raises(sd.SudareError) as refusal:
            sd.Plan.from_json(text.replace(old, new))
        assert isinstance(refusal.value, (sd.FormatError, sd.PlanError))


def test_everything_travels_but_the_secret() -> None:
    a, b = np.arange(12).reshape(3, 4), np.arange(-10, 10).reshape(4, 5)
    plan = sd.plan(
        lambda A, B: A @ B, A=sd.spec((3, 4), max_abs=11, dtype=int), B=sd.spec((4, 5), max_abs=10, dtype=int)
    )
    plan = pickle.loads(pickle.dumps(plan))
    client = plan.client()
    x, y = pickle.loads(pickle.dumps((client.encrypt(a, "A"), client.encrypt(b, "B"))))
    server = pickle.loads(pickle.dumps(client.server()))
    z = pickle.loads(pickle.dumps(server.bind(x) @ y))
    again = sd.Client.from_secret_bytes(plan, client.secret_bytes())
    assert np.array_equal(again.decrypt(z), a @ b)
    with pytest.raises(sd.UnsupportedError):
        pickle.dumps(client)
    with pytest.raises(sd.KeyMismatchError):
        plan.client().decrypt(z)
    # Anybody multiplies: nothing that was pickled is bound to a server.
    assert np.array_equal(client.decrypt(x @ y), a @ b)
    assert "exact" in repr(x)
    assert x.dtype == np.int64
    assert "exact" in str(plan)
    assert "hidden" in repr(client)


def test_refusals() -> None:
    A, B = sd.spec((2, 3), max_abs=10, dtype=int), sd.spec((3, 2), max_abs=10, dtype=int)
    plan = sd.plan(lambda A, B: A @ B, A=A, B=B)
    client = plan.client()
    with pytest.raises(sd.UnsupportedError, match="rounded"):
        client.encrypt(np.ones((2, 3)), "A")
    with pytest.raises(sd.SudareError):
        client.encrypt(np.full((2, 3), 11), "A")
    with pytest.raises(sd.ShapeError):
        client.encrypt(np.ones((3, 2), dtype=int), "A")
    with pytest.raises(sd.PlanError):
        client.encrypt(np.ones((2, 3), dtype=int), "C")
    x = client.encrypt(np.ones((2, 3), dtype=int), "A")
    with pytest.raises(sd.UnsupportedError):
        np.asarray(x)
    with pytest.raises(sd.PlanError):
        x @ np.ones((3, 2), dtype=int)
    with pytest.raises(sd.PlanError):
        x + x
    with pytest.raises(sd.ReleaseError):
        client.decrypt(x, release=True)
    for function in (
        lambda A, B: A + A,
        lambda A, B: A @ A.T,
        lambda A, B: A,
    ):
        with pytest.raises(sd.PlanError):
            sd.plan(function, A=A, B=B)
    with pytest.raises(sd.PlanError):
        sd.plan(lambda A, B: A @ B, A=A, B=sd.spec((3, 2)))
    with pytest.raises(sd.PlanError):
        sd.plan(lambda A, B: A @ B, A=sd.spec((2, 3)), B=sd.spec((3, 2)))
    with pytest.raises(sd.PlanError):
        sd.plan(lambda A, B: A @ B, error=1e-3, A=A, B=B)
    with pytest.raises(sd.InputError):
        sd.spec((2, 2), dtype=complex)
