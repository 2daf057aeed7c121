"""Exact products of encrypted integers against NumPy, on real data, and what they refuse."""

from __future__ import annotations

import pickle
import re

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
        lambda A, B: (A @ B).sum(axis=0),
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
