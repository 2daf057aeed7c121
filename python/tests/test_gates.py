"""Booleans under sets of gates, against NumPy and against the same under a set of integers."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sudare as sd
from conftest import BINARY, same
from numpy.typing import NDArray

Bools = NDArray[np.bool_]


@pytest.fixture(scope="module")
def gates() -> sd.BitsContext:
    return sd.bits(parameters="insecure_test_gates", threads=2)


@pytest.fixture(scope="module")
def integers() -> sd.BitsContext:
    return sd.bits(parameters="insecure_test", threads=2)


@pytest.fixture(params=["gates", "integers"])
def ctx(request: pytest.FixtureRequest) -> sd.BitsContext:
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


OPERATIONS: list[Callable[[Any, Any], Any]] = [
    *BINARY,
    lambda x, y: x + y,
    lambda x, y: x * y,
    np.logical_and,
    np.logical_or,
    np.logical_xor,
]


def test_every_truth_table(ctx: sd.BitsContext) -> None:
    a, b, c = (np.array(column) for column in zip(*itertools.product([False, True], repeat=3), strict=True))
    x, y, z = ctx.encrypt(a), ctx.encrypt(b), ctx.encrypt(c)
    for operation in OPERATIONS:
        same(ctx, operation(x, y), operation(a, b))
        # Public operands on either side.
        same(ctx, operation(x, b), operation(a, b))
        same(ctx, operation(a, y), operation(a, b))
    same(ctx, ~x, ~a)
    same(ctx, np.logical_not(x), ~a)
    for p, q, r in itertools.product([(a, x), (a, a)], [(b, y), (b, b)], [(c, z), (c, c)]):
        if any(isinstance(v, sd.EncryptedBits) for _, v in (p, q, r)):
            same(ctx, sd.where(p[1], q[1], r[1]), np.where(p[0], q[0], r[0]))
    for table in itertools.product([False, True], repeat=2):
        same(ctx, x.lookup(np.array(table)), np.array(table)[a.astype(int)])
    # What a choice gives goes wherever a bit goes, twice into one gate as well.
    chosen, plain = sd.where(x, y, z), np.where(a, b, c)
    same(ctx, chosen ^ chosen, plain ^ plain)
    same(ctx, sd.where(chosen, chosen, ~chosen) & chosen, plain)


def test_random_expressions(ctx: sd.BitsContext) -> None:
    rng = np.random.default_rng(7)
    values: list[Bools] = [rng.integers(0, 2, (2, 3)).astype(bool) for _ in range(3)]
    encrypted: list[Any] = [ctx.encrypt(v) for v in values]
    for _ in range(24):
        i, j, k = rng.integers(0, len(values), 3)
        match rng.integers(0, 4):
            case 0:
                made, plain = (
                    sd.where(encrypted[i], encrypted[j], encrypted[k]),
                    np.where(*(values[n] for n in (i, j, k))),
                )
            case 1:
                made, plain = ~encrypted[i], ~values[i]
            case _:
                operation = OPERATIONS[rng.integers(0, len(OPERATIONS))]
                made, plain = operation(encrypted[i], encrypted[j]), operation(values[i], values[j])
        same(ctx, made, plain)
        slot = rng.integers(0, len(values) + 1) if len(values) < 8 else rng.integers(0, len(values))
        values[slot : slot + 1], encrypted[slot : slot + 1] = [plain], [made]


def test_reductions(ctx: sd.BitsContext) -> None:
    rng = np.random.default_rng(8)
    for shape in [(1,), (2,), (9,), (3, 5), (4, 1, 2)]:
        for a in (np.zeros(shape, bool), np.ones(shape, bool), rng.integers(0, 4, shape) > 0):
            x = ctx.encrypt(a)
            for axis in (None, *range(len(shape))):
                same(ctx, x.any(axis), a.any(axis))
                same(ctx, x.all(axis), a.all(axis))
            same(ctx, np.any(x, axis=-1, keepdims=True), a.any(axis=-1, keepdims=True))
            same(ctx, x.max(), a.max())
    with pytest.raises(sd.ShapeError):
        ctx.encrypt(np.zeros((0, 2), bool)).any()


def test_arrays_are_their_elements(ctx: sd.BitsContext) -> None:
    rng = np.random.default_rng(9)
    a, b = (rng.integers(0, 2, 9).astype(bool) for _ in range(2))
    x, y = ctx.encrypt(a), ctx.encrypt(b)
    whole = x & y
    one_by_one: Any = np.stack([x[i] & y[i] for i in range(9)])
    # The same ciphertexts, whether they were computed side by side or alone.
    assert whole.to_bytes() == one_by_one.to_bytes()
    same(ctx, whole, a & b)


def test_a_set_of_gates_holds_booleans_alone(gates: sd.BitsContext) -> None:
    x = gates.encrypt([True, False])
    refusals: tuple[Callable[[], Any], ...] = (
        lambda: gates.encrypt([1, 2]),
        lambda: x + 1,
        lambda: x.astype("uint8"),
        lambda: x.sum(),
        lambda: x << 1,
        lambda: x.lookup(np.array([3, 4], "uint8")),
    )
    for refused in refusals:
        with pytest.raises(sd.UnsupportedError, match="set of integers"):
            refused()
    with pytest.raises(sd.UnsupportedError):
        _ = -x
    with pytest.raises(sd.UnsupportedError):
        _ = x - x


def test_contexts_do_not_mix(gates: sd.BitsContext, integers: sd.BitsContext) -> None:
    x, y = gates.encrypt([True]), integers.encrypt([True])
    mixed: tuple[Callable[[], Any], ...] = (
        lambda: x & y,
        lambda: y & x,
        lambda: sd.where(x, y, y),
        lambda: np.concatenate([x, y]),
    )
    for work in mixed:
        with pytest.raises(sd.KeyMismatchError):
            work()
    with pytest.raises(sd.KeyMismatchError):
        gates.decrypt(y)
    with pytest.raises(sd.KeyMismatchError):
        integers.load(x.to_bytes())
    with pytest.raises(sd.KeyMismatchError):
        sd.BitsServer.from_bytes(integers.params_bytes(), gates.server().to_bytes())


def test_they_travel() -> None:
    client = sd.BitsClient(parameters="insecure_test_gates", threads=1)
    server: sd.BitsServer = pickle.loads(pickle.dumps(client.server()))
    a = np.array([[True, False], [True, True]])
    sent = client.encrypt(a).to_bytes()
    assert len(sent) < 4500  # one residue an element, and a header
    received = pickle.loads(pickle.dumps(server.load(sent)))
    answer = sd.where(server.bind(received), server.plain([False, True]), received) | server.load(sent)
    back = client.load(pickle.loads(pickle.dumps(answer)).to_bytes())
    np.testing.assert_array_equal(client.decrypt(back), np.where(a, [False, True], a) | a)
    again = sd.BitsClient.from_secret_bytes(client.params_bytes(), client.secret_bytes())
    np.testing.assert_array_equal(again.decrypt(client.load(sent)), a)
    damaged = bytearray(sent)
    damaged[300] ^= 1
    with pytest.raises(sd.FormatError):
        client.load(bytes(damaged))


def test_real_gates() -> None:
    ctx, big = sd.bits(parameters="gates"), sd.BitsClient()
    a, b = np.array([False, True, False, True]), np.array([False, False, True, True])
    x, y = ctx.encrypt(a), ctx.encrypt(b)
    same(ctx, x & y, a & b)
    same(ctx, sd.where(x ^ y, x, y), np.where(a ^ b, a, b))
    # The claims of the set, and what it saves.
    assert "128-bit" in repr(ctx)
    assert "failure 2^-1" in repr(ctx)
    assert ctx.server().wire_bytes * 3 < big.server().wire_bytes
    assert ctx.server().key_bytes * 1.5 < big.server().key_bytes


@pytest.mark.parametrize(
    ("name", "failure"), [("gates", -128), ("gates_failure_64", -64), ("gates_failure_40", -40)]
)
def test_every_set_of_gates_decrypts(name: str, failure: float) -> None:
    client = sd.BitsClient(parameters=name)
    values = np.array([True, False, False, True])
    assert (client.decrypt(client.encrypt(values)) == values).all()
    # By the noise model, for the noisiest operands of a gate.
    assert client._params.log_failure <= failure
