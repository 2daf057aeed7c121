"""Functions with an interval, masks, unused values and settings by mistake: what everyday programs meet."""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sudare as sd
from conftest import NEWER

X = np.random.default_rng(27).uniform(-1, 1, (4, 3))


@pytest.fixture(scope="module")
def ctx() -> sd.Context:
    return sd.context(depth=4, tile=4, security="insecure", threads=1)


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], float]] = {
    "relu": (lambda x: sd.relu(x, (-1, 1), degree=15), lambda x: np.maximum(x, 0), 0.02),
    "relu on one side": (lambda x: sd.relu(x, (-1, 2), error=0.02), lambda x: np.maximum(x, 0), 0.021),
    "tanh": (lambda x: sd.tanh(x, (-1, 1), degree=9), np.tanh, 1e-4),
    "log": (lambda x: sd.log(x + 2, (1, 3), degree=9), lambda x: np.log(x + 2), 1e-4),
    "maximum": (lambda x: sd.maximum(x, 0.25, max_abs=1.25, degree=15), lambda x: np.maximum(x, 0.25), 0.03),
    "minimum": (
        lambda x: sd.minimum(x, x[::-1], max_abs=2, degree=15),
        lambda x: np.minimum(x, x[::-1]),
        0.04,
    ),
    "where": (lambda x: sd.where(X > 0, x, -1), lambda x: np.where(X > 0, x, -1), 1e-5),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_with_an_interval(ctx: sd.Context, name: str) -> None:
    ours, numpys, error = FUNCTIONS[name]
    wanted = numpys(X)
    x = ctx.encrypt(X, max_abs=1)
    assert np.abs(ctx.decrypt(ours(x)) - wanted).max() < error
    # Plain ones are NumPy's.
    np.testing.assert_allclose(ours(X), wanted)
    plan = sd.plan(ours, x=sd.spec(X.shape), error=0.1, security="insecure")
    client = plan.client(threads=1)
    client.server()
    assert (
        np.abs(client.decrypt(ours(client.encrypt(X, "x"))) - wanted).max() <= plan.error < 2 * error + 1e-4
    )


def test_comparisons_say_what_they_want(ctx: sd.Context) -> None:
    x = ctx.encrypt(X, max_abs=1)
    for function in (sd.maximum, sd.minimum):
        with pytest.raises(
            sd.UnsupportedError, match=rf"sudare\.{function.__name__}\(x, y, max_abs=1, degree"
        ):
            function(x, 0)
    with pytest.raises(sd.UnsupportedError, match=r"sudare\.greater\(x, 0, gap"):
        sd.where(x, 1, 0)
    with pytest.raises(sd.InputError, match=r"gap=0\.1, max_abs=1"):
        sd.greater(x, 0)
    with pytest.raises(sd.InputError, match=r"lower end: \(-1, 1\)"):
        sd.exp(x, (1, -1), degree=3)
    with pytest.raises(sd.UnsupportedError, match=r"numpy\.stack"):
        np.array([x, x])
    assert not hasattr(x, "std")


UNUSED: dict[str, Callable[[Any], Any]] = {
    "a mean": lambda A: [A.mean(axis=0), A * 2][1],
    "a chain": lambda A: [np.tril(A @ A.T) * 3, A * A][1],
    "with a plain matrix": lambda A: [A * X, A @ np.ones((3, 1)), A + 1][2],
    "unpacked": lambda A: next(iter(tuple(A))),
    "split": lambda A: np.split(A, 2)[1] * 2,
}


@pytest.mark.parametrize("name", UNUSED)
def test_what_a_result_does_not_need_is_left_out(name: str) -> None:
    function = UNUSED[name]
    plan = sd.plan(function, A=sd.spec(X.shape), error=1e-3, security="insecure")
    client = plan.client(threads=1)
    client.server()
    found = client.decrypt(function(client.encrypt(X, "A")))
    assert np.abs(found - function(X)).max() <= plan.error


def test_an_unused_value_is_no_result() -> None:
    plan = sd.plan(lambda A: [A.mean(axis=0), A * 2][1], A=sd.spec(X.shape), error=1e-3, security="insecure")
    client = plan.client(threads=1)
    client.server()
    a = client.encrypt(X, "A")
    mean = a.mean(axis=0)
    assert mean.shape == (3,)
    uses: list[Callable[[Any], Any]] = [client.decrypt, lambda x: x.to_bytes(), lambda x: a + x]
    for use in uses:
        with pytest.raises(sd.PlanError, match="not possible here"):
            use(mean)
    with pytest.raises(sd.PlanError, match="not possible here"):
        a @ a.T
    # A server elsewhere has the plan alone.
    far = sd.Plan(plan._core)
    again = sd.Encrypted(a._core, far, sd.Server(client.server()._core, far))
    with pytest.raises(sd.PlanError, match="not possible here"):
        again.mean(axis=0)


def test_settings_that_are_none() -> None:
    with pytest.raises(sd.PlanError, match="batch is a setting"):
        sd.plan(lambda batch: batch * 2, batch=sd.spec((2, 2)), error=1e-3)  # type: ignore[arg-type]
    with pytest.raises(sd.PlanError, match="finite number"):
        sd.plan(lambda A: A * 2, A=sd.spec((2, 2)), error=float("inf"))


def test_messages_name_what_there_is(ctx: sd.Context) -> None:
    with pytest.raises(sd.InputError, match=r"\(1, 0\) is over max_abs=1; give a larger one"):
        ctx.encrypt([[0.0, 1], [2, 0]], max_abs=1)
    with pytest.raises(sd.UnsupportedError, match="context stays in its process"):
        ctx.encrypt(X).to_bytes()
    with pytest.raises(FileNotFoundError, match=r"nowhere\.panel"):
        sd.genome.Panel.open("nowhere.panel")
    weights = np.eye(3)
    plan = sd.plan(lambda A: A @ weights, A=sd.spec((4, 3)), error=1e-3, security="insecure")
    assert "A @ plain weights" in str(plan)


def test_contexts_name_what_they_have(ctx: sd.Context) -> None:
    small = sd.context(depth=1, tile=2, security="insecure", threads=1)
    x = small.encrypt(np.full((2, 2), 2.0**20))
    with pytest.raises(sd.PrecisionError, match=r"x\.bounded\(max_abs\)") as told:
        x * x * x * x
    assert "rescale" not in str(told.value)
    with pytest.raises(sd.LevelError, match="make a context with a depth"):
        functools.reduce(operator.matmul, [small.encrypt(np.eye(2))] * 3)
    with pytest.raises(sd.UnsupportedError, match="stays in its process"):
        x.save("x")
    with pytest.raises(sd.InputError, match=r"up to 1e\+15, not 1e\+300"):
        sd.spec((2, 2), max_abs=1e300)


# What `docs/guide` has of refusals: each names what to write, in words of what there is.
MESSAGES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "maximum": (lambda x: sd.maximum(x, 0), r"sudare\.maximum\(x, y, max_abs=1"),
    "where encrypted": (lambda x: sd.where(x, 1, 0), r"sudare\.greater\(x, 0, gap"),
    "several": (lambda x: np.sum([x, x]), r"numpy\.stack"),
    "interval": (lambda x: sd.exp(x, (1, -1), degree=3), r"lower end: \(-1, 1\)"),
    "gap": (lambda x: sd.greater(x, 0), r"gap=0\.1, max_abs=1"),
    "exponential": (lambda x: np.exp(x), r"sudare\.exp\(x, \(-1, 1\), degree=7\)"),
    "comparison": (lambda x: x > 0, r"sudare\.greater"),
    "softmax": (lambda x: sd.softmax(x), r"e = sudare\.exp"),
    "standard deviation": (lambda x: np.std(x), r"sudare\.sqrt\(sudare\.bounded\(numpy\.var"),
    "texts": (lambda x: x + np.array(["a"]), r"encrypt_text\(x, length=8\)"),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_say_what_to_write(ctx: sd.Context, name: str) -> None:
    wrong, told = MESSAGES[name]
    with pytest.raises((sd.SudareError, AttributeError), match=told):
        wrong(ctx.encrypt(X, max_abs=1))


@NEWER
def test_words_that_were_refused_by_mistake(ctx: sd.Context) -> None:
    x = ctx.encrypt(X, max_abs=1)
    for found, wanted in (
        (np.linalg.matmul(x.T, x), X.T @ X),
        (np.add.accumulate(x), np.add.accumulate(X)),
        (np.where(X > 0, x, 0), np.where(X > 0, X, 0)),
    ):
        np.testing.assert_allclose(ctx.decrypt(found), wanted, atol=1e-4)


def test_frames() -> None:
    pd = pytest.importorskip("pandas")
    ctx = sd.context(depth=1, tile=4, security="insecure", threads=1)
    frame = pd.DataFrame({"on": [True, False], "n": pd.array([1, 2], "Int64"), "x": [0.5, -1]})
    wanted = frame.astype(float).to_numpy()
    x = ctx.encrypt(frame)
    np.testing.assert_allclose(ctx.decrypt(x), wanted, atol=1e-6)
    np.testing.assert_allclose(ctx.decrypt(frame["x"] + x[:, 0]), frame["x"] + wanted[:, 0], atol=1e-6)
    np.testing.assert_allclose(ctx.decrypt(frame * x), wanted * wanted, atol=1e-6)
    twice = frame[["x", "x"]]
    np.testing.assert_allclose(ctx.decrypt(ctx.encrypt(twice)), twice.to_numpy(), atol=1e-6)
    whole = sd.bits(parameters="insecure_test", threads=1)
    found = whole.decrypt(whole.encrypt(frame[["on", "n"]]))
    np.testing.assert_array_equal(found, wanted[:, :2])
    assert found.dtype == np.int64
    for column, error, told in (
        (["a", "b"], sd.UnsupportedError, r"column 'bad' holds .*get_dummies"),
        (pd.to_datetime(["2026-01-01", "2026-01-02"]), sd.UnsupportedError, "column 'bad' holds datetime64"),
        (pd.array([1, None], "Int64"), sd.InputError, "row 1 of column 'bad' has no value"),
        ([np.inf, 1.0], sd.InputError, "row 0 of column 'bad' is inf"),
    ):
        with pytest.raises(error, match=told):
            ctx.encrypt(frame.assign(bad=column))
    with pytest.raises(sd.UnsupportedError, match=r"frame\.to_numpy"):
        frame @ x.T


def test_a_frame_under_a_name_that_is_none() -> None:
    pd = pytest.importorskip("pandas")
    plan = sd.plan(lambda A: A * 2, A=sd.spec((2, 1)), error=1e-3, security="insecure")
    with pytest.raises(sd.PlanError, match="no input nosuch"):
        plan.client(threads=1).encrypt(pd.DataFrame({"x": [0.5, 1]}), "nosuch")


def test_polars_frames() -> None:
    pl = pytest.importorskip("polars")
    ctx = sd.context(depth=1, tile=4, security="insecure", threads=1)
    frame = pl.DataFrame({"on": [True, False], "n": [1, 2], "x": [0.5, -1.0]})
    assert np.abs(ctx.decrypt(ctx.encrypt(frame)) - np.array([[1, 1, 0.5], [0, 2, -1]])).max() < 1e-6
    with pytest.raises(sd.InputError, match="row 1 of column 'n' has no value"):
        ctx.encrypt(frame.with_columns(n=pl.Series([1, None])))


def test_elements_are_assigned(ctx: sd.Context) -> None:
    x, wanted = ctx.encrypt(X, max_abs=1), X.copy()
    kept, row = x.copy(), x[0]
    changes: list[tuple[Any, Any, Any]] = [
        (slice(1, 3), 0.5, 0.5),
        ((slice(None), 2), [1, 2, 3, 4], [1, 2, 3, 4]),
        (3, kept[0] * 2, X[0] * 2),
        ((slice(0, 2), slice(1, 3)), kept[2:, :2], X[2:, :2]),
    ]
    for key, value, plain in changes:
        x[key] = value
        wanted[key] = plain
    np.testing.assert_allclose(ctx.decrypt(x), wanted, atol=1e-5)
    # What was copied or picked stays as it was.
    np.testing.assert_allclose(ctx.decrypt(kept), X, atol=1e-5)
    np.testing.assert_allclose(ctx.decrypt(row), X[0], atol=1e-5)
    refused: list[tuple[Any, Any, type[Exception]]] = [
        (kept, 1, sd.UnsupportedError),
        ([0, 2], kept[:2], sd.UnsupportedError),
        (9, 1, sd.ShapeError),
        (0, [1, 2], sd.ShapeError),
    ]
    for key, value, error in refused:
        with pytest.raises(error):
            x[key] = value


def test_an_encrypted_vector_goes_into_a_plain_one() -> None:
    def f(A: Any, b: Any) -> Any:
        b = b.copy()
        b[0:2] = A.sum(axis=0)
        return b * 2

    a, b = X[:, :2], np.array([1.0, 2, 3])
    plan = sd.plan(f, A=sd.spec((4, 2)), b=sd.spec(3, max_abs=3, plain=True), error=1e-3, security="insecure")
    client = plan.client(threads=1)
    found = client.decrypt(f(client.encrypt(a, "A"), client.server().plain(b, "b")))
    np.testing.assert_allclose(found, f(a, b), atol=1e-3)


def test_an_encrypted_number_is_assigned(ctx: sd.Context) -> None:
    x, y = ctx.encrypt(X, max_abs=1)[0, 0], ctx.encrypt(X, max_abs=1)[1, 1]
    x[...] = y
    assert x.shape == ()
    assert abs(ctx.decrypt(x) - X[1, 1]) < 1e-5


# As many members as each has rows: no shape tells the axes apart.
BATCH = np.random.default_rng(32).uniform(-1, 1, (3, 3, 4))
OF_MEMBERS: dict[str, Callable[[Any], Any]] = {
    "sums so far": lambda x: np.cumsum(x, axis=-2),
    "accumulated": lambda x: np.add.accumulate(x, axis=-1),
    "repeated": lambda x: np.repeat(x, 9, axis=-2),
    "trace": lambda x: np.trace(x, 1, -2, -1),
    "linalg.trace": lambda x: np.linalg.trace(x),
    "average": lambda x: np.average(x, axis=-2, weights=[1, 2, 3]),
    "average of all": lambda x: np.average(x, axis=(-2, -1), weights=BATCH[0] + 2),
    "matrix and vectors": lambda x: np.matvec(BATCH[0], x),
    "vectors and matrix": lambda x: np.vecmat(x, BATCH[0].T),
    "inner": lambda x: np.inner(x, BATCH[0].tolist()),
}
ACROSS_MEMBERS: dict[str, Callable[[Any], Any]] = {
    "sums so far": lambda x: np.cumsum(x, axis=0),
    "accumulated": np.add.accumulate,
    "repeated": lambda x: np.repeat(x, 9, axis=0),
    "tiled": lambda x: np.tile(x, (9, 1, 1)),
    "padded": lambda x: np.pad(x, ((9, 9), (0, 0), (0, 0)), mode="edge"),
    "trace": np.trace,
    "own trace": lambda x: x.trace(),
    "vectors of each matrix": lambda x: np.matvec(x, x),
    "dot": lambda x: np.dot(BATCH[0].T, x),
}


@NEWER
@pytest.mark.parametrize("name", OF_MEMBERS)
def test_functions_of_the_members_of_a_batch(name: str) -> None:
    function = OF_MEMBERS[name]
    plan = sd.plan(function, x=sd.spec((3, 4)), error=1e-3, batch=3, security="insecure")
    client = plan.client(threads=1)
    client.server()
    found, wanted = client.decrypt(function(client.encrypt(BATCH))), function(BATCH)
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, atol=1e-3)


@NEWER
@pytest.mark.parametrize("name", ACROSS_MEMBERS)
def test_functions_across_the_members_of_a_batch(name: str) -> None:
    plan = sd.plan(lambda x: x * 2, x=sd.spec((3, 4)), error=1e-3, batch=3, security="insecure")
    client = plan.client(threads=1)
    client.server()
    x = client.encrypt(BATCH)
    with pytest.raises(sd.ShapeError, match=r"batch|two axes"):
        ACROSS_MEMBERS[name](x)


def test_plain_arrays_beside_a_batch_of_vectors() -> None:
    plan = sd.plan(lambda x: x.sum(axis=-1), x=sd.spec((3, 4)), error=1e-3, batch=3, security="insecure")
    client = plan.client(threads=1)
    client.server()
    sums = client.encrypt(BATCH).sum(axis=-1)
    with pytest.raises(sd.PlanError, match="not possible here"):
        np.average(sums, axis=-1, weights=BATCH[:, :, 0])
    with pytest.raises(sd.ShapeError, match="two axes"):
        sums + BATCH[:, :, :3]


def test_what_is_left_empty_is_plain(ctx: sd.Context) -> None:
    x = ctx.encrypt(X, max_abs=1)
    for repeated in ((2, 0), (0, 2), (0, 0)):
        np.testing.assert_array_equal(np.tile(x, repeated), np.tile(X, repeated))


def test_weights_along_an_axis(ctx: sd.Context) -> None:
    x = ctx.encrypt(X, max_abs=1)
    for axis, weights in ((0, [1, 2, 3, 4]), (1, [1, 2, 4]), (None, X + 2), ((0, 1), X + 2)):
        found = ctx.decrypt(np.average(x, axis=axis, weights=weights))
        np.testing.assert_allclose(found, np.average(X, axis=axis, weights=weights), atol=1e-4)
    for axis in (None, 0):
        with pytest.raises(sd.ShapeError, match=r"weights of shape \(3,\)"):
            np.average(x, axis=axis, weights=[1, 2, 3])


def test_a_numpy_without_newer_functions(ctx: sd.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first NumPy that is supported has no vecdot, and few of the Array API's names."""
    from sudare import _array

    for name in ("vecdot", "isdtype", "concat", "cumulative_prod"):
        monkeypatch.delattr(np, name, raising=False)
    x = ctx.encrypt(X, max_abs=1)
    np.testing.assert_allclose(ctx.decrypt(x + x), X + X, atol=1e-5)
    xp = _array._namespace.__wrapped__()
    np.testing.assert_allclose(ctx.decrypt(xp.sum(x, axis=0)), X.sum(axis=0), atol=1e-5)
    for name in ("isdtype", "concat", "cumulative_prod"):
        assert not hasattr(xp, name)
        assert "numpy>=2.1" in xp.left_out[name]


def test_functions_without_a_signature(ctx: sd.Context, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before 2.4 those of NumPy that are in C have none."""
    known = inspect.signature

    def signature(function: Any) -> inspect.Signature:
        if function is np.concatenate:
            raise ValueError("no signature found")
        return known(function)

    monkeypatch.setattr(inspect, "signature", signature)
    x = ctx.encrypt(X, max_abs=1)
    found = np.concatenate([x, X], axis=None)
    np.testing.assert_allclose(ctx.decrypt(found), np.concatenate([X, X], axis=None), atol=1e-5)


@NEWER
def test_the_array_api(ctx: sd.Context) -> None:
    bits = sd.bits(parameters="insecure_test", threads=1)
    whole = np.array([[1, -2, 3], [4, 5, 6]], np.int8)
    arrays: list[tuple[Any, Any, Any]] = [
        (ctx.encrypt(X, max_abs=1), X, ctx.decrypt),
        (bits.encrypt(whole), whole, bits.decrypt),
    ]
    for x, plain, decrypt in arrays:
        xp = x.__array_namespace__(api_version="2024.12")
        assert xp is x.__array_namespace__()
        found = xp.concat([xp.flip(x, axis=0), xp.asarray(x), xp.ones((1, 3), dtype=x.dtype)], axis=0)
        np.testing.assert_allclose(
            decrypt(found), np.concat([np.flip(plain, axis=0), plain, np.ones((1, 3))]), atol=1e-5
        )
        sums = xp.cumulative_sum(x, axis=1, include_initial=True)
        np.testing.assert_allclose(
            decrypt(sums), np.cumulative_sum(plain, axis=1, include_initial=True), atol=1e-5
        )
        product = xp.linalg.matmul(xp.permute_dims(x, (1, 0)), x)
        np.testing.assert_allclose(decrypt(product), plain.T @ plain, atol=1e-4)
        # Each name of the standard is there, or says what to write.
        for name, told in xp.left_out.items():
            assert not hasattr(xp, name)
            assert any(word in told for word in ("write", "decrypt")), (name, told)
        assert {"exp", "fft.fft", "take_along_axis"} <= set(xp.left_out)
        with pytest.raises(sd.UnsupportedError, match=r"2024\.12"):
            x.__array_namespace__(api_version="1999.1")


def test_many_lines_are_a_product(ctx: sd.Context) -> None:
    rows = np.random.default_rng(1).permutation(12)
    big = np.arange(24.0).reshape(12, 2) / 24
    x = ctx.encrypt(big, max_abs=1)
    cases: list[tuple[Any, Any]] = [
        (x[rows], big[rows]),
        (np.repeat(x, 3, axis=0), np.repeat(big, 3, axis=0)),
        (x[:, 1][rows > 5], big[:, 1][rows > 5]),
        (np.tile(x, (1, 5)), np.tile(big, (1, 5))),
        (np.convolve(x[:, 0], np.ones(3) / 3, "valid"), np.convolve(big[:, 0], np.ones(3) / 3, "valid")),
    ]
    for picked, wanted in cases:
        assert picked.shape == wanted.shape
        assert np.abs(ctx.decrypt(picked) - wanted).max() < 1e-5


W = np.random.default_rng(28).uniform(-1, 1, 30)
PRODUCTS: dict[str, Callable[[Any], Any]] = {
    "vector": lambda X: X @ W,
    "column": lambda X: X @ W[:, None],
    "from the left": lambda X: W @ X,
    "row from the left": lambda X: W[None] @ X,
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_matrix_times_a_plain_vector_takes_few_keys(name: str) -> None:
    """Inside of a circuit it is a product of each element and its sums: a rotation for each power of two."""
    x = np.random.default_rng(29).uniform(-1, 1, (30, 12) if "left" in name else (12, 30))

    def scores(X: Any) -> Any:
        return sd.sigmoid(sd.bounded(PRODUCTS[name](X) + 0.25, 8), (-8, 8), degree=7)

    plan = sd.plan(scores, X=sd.spec(x.shape), error=0.1)
    assert len(plan.summary["keys"]) < 15
    assert "matrix product" not in str(plan)
    # A plan that was read computes the same.
    for same in (plan, sd.Plan.from_json(plan.to_json())):
        client = same.client(threads=1)
        client.server()
        found = client.decrypt(scores(client.encrypt(x)))
        assert found.shape == scores(x).shape
        assert np.abs(found - scores(x)).max() <= plan.error
    # By itself it has a faster method.
    alone = sd.plan(PRODUCTS[name], X=sd.spec(x.shape), error=1e-3, security="insecure")
    client = alone.client(threads=1)
    client.server()
    assert "@" in str(alone).splitlines()[0]
    assert np.abs(client.decrypt(PRODUCTS[name](client.encrypt(x))) - PRODUCTS[name](x)).max() <= 1e-3


def test_plain_vectors_in_batches_and_blocks() -> None:
    x = np.random.default_rng(30).uniform(-1, 1, (3, 12, 30))

    def scores(X: Any) -> Any:
        return sd.tanh(sd.bounded(X @ W / 4, 2), (-2, 2), degree=7)

    plan = sd.plan(scores, X=sd.spec((12, 30)), error=0.1, batch=3, security="insecure")
    client = plan.client(threads=1)
    client.server()
    assert np.abs(client.decrypt(scores(client.encrypt(x))) - scores(x)).max() <= plan.error
    plan = sd.plan(scores, X=sd.spec((None, 30)), error=0.1, security="insecure")
    client = plan.client(threads=1)
    client.server()
    rows = x.reshape(-1, 30)
    assert np.abs(client.decrypt(scores(client.encrypt(rows))) - scores(rows)).max() <= plan.error


def test_plain_vectors_of_a_plan_from_a_file_beside_named_ones() -> None:
    """A vector with a name is a matrix product; what the function brings along is as the plan has it."""
    x, v = np.random.default_rng(31).uniform(-1, 1, (12, 30)), W[::-1].copy()

    def scores(X: Any, V: Any) -> Any:
        return sd.tanh(sd.bounded(X @ W / 8, 2), (-2, 2), degree=7) + X @ V / 8

    made = sd.plan(scores, X=sd.spec((12, 30)), V=sd.spec(30, plain=True), error=0.1)
    for plan in (made, sd.Plan.from_json(made.to_json())):
        client = plan.client(threads=1)
        server = client.server()
        found = client.decrypt(scores(client.encrypt(x, "X"), server.plain(v, "V")))
        assert np.abs(found - scores(x, v)).max() <= plan.error


def test_a_plan_says_what_bounds_would_save(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds grow with products: where that makes keys large, or a plan impossible, it is said."""
    eighth = sd.plan(lambda X: np.linalg.matrix_power(X, 8), X=sd.spec((10, 10)), error=1e-3)
    assert "sudare.bounded(x, 1) after each product" in str(eighth)
    assert "sudare.bounded(x, 1) after each product" in eighth._repr_html_()
    monkeypatch.setattr("sudare._progress.LARGE", 1e8)
    with pytest.warns(sd.CostWarning, match=r"; sudare\.bounded"):
        eighth._forecast_keys()

    def bounded(X: Any) -> Any:
        for _ in range(3):
            X = sd.bounded(X @ X, 1)
        return X

    told = sd.plan(bounded, X=sd.spec((10, 10)), error=1e-3)
    assert "after each product" not in str(told)
    keys = [sum(key["bytes"] for key in plan.summary["keys"]) for plan in (told, eighth)]
    assert keys[0] < 0.85 * keys[1]
    assert f"{keys[0] / 1e6:.0f} MB" in str(eighth)
    with pytest.raises(sd.PlanError, match=r"or say how large products are: sudare\.bounded\(x, 2\)"):
        sd.plan(lambda X: np.linalg.matrix_power(X, 8), X=sd.spec((10, 10), max_abs=2), error=1e-3)


def test_a_standard_deviation_by_what_its_refusal_says(ctx: sd.Context) -> None:
    x = ctx.encrypt(X, max_abs=1)
    root = r"sudare\.sqrt\(sudare\.bounded\(numpy\.var\(x\), 1\), \(0\.1, 1\)"
    with pytest.raises(sd.UnsupportedError, match=root):
        np.std(x)
    deep = sd.context(depth=7, tile=4, security="insecure", threads=1)
    x = deep.encrypt(X, max_abs=1)
    found = deep.decrypt(sd.sqrt(sd.bounded(np.var(x), 1), (0.1, 1), degree=7))
    assert abs(found - np.std(X)) < 1e-3
    uses: list[Callable[[Any], Any]] = [lambda x: x // 2, lambda x: x % 2, lambda x: divmod(x, 2)]
    for use in uses:
        with pytest.raises(sd.UnsupportedError, match=r"sudare\.greater\(x, edge, gap=0\.\d"):
            use(x)


def test_compact_results(tmp_path: Path) -> None:
    """Fewer bytes, the wanted error, and a plan like any other: others need not know how it was chosen."""
    rng = np.random.default_rng(27)
    A, B = rng.uniform(-1, 1, (40, 60)), rng.uniform(-1, 1, (60, 20))
    sizes = []
    for compact in (False, True):
        plan = sd.plan(lambda A, B: A @ B, A=A, B=B, error=1e-3, compact=compact)
        plan.save(tmp_path / "plan.json")
        assert sd.load(tmp_path / "plan.json") == plan
        client = plan.client(threads=1)
        client.server()
        C = client.encrypt(A, "A") @ client.encrypt(B, "B")
        assert np.abs(client.decrypt(C) - A @ B).max() <= plan.error <= 1e-3
        sizes.append(len(C.to_bytes()))
        taken = next(other for other in plan.considered if other["verdict"] == "taken")
        assert sizes[-1] == pytest.approx(taken["result_bytes"], rel=0.05)
    assert 2 * sizes[1] < sizes[0]
