"""Every encrypted object refuses what would show values; arguments are taken for what they are, or not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sudare as sd
from conftest import NEWER
from sudare._opaque import Opaque
from sudare._tile import About, EncryptedTile

QUICK = "insecure_test"


@pytest.fixture(scope="module")
def opaque() -> dict[str, Any]:
    """One object of every class whose values nobody sees."""
    plan = sd.plan(lambda A, B: A @ B, A=sd.spec((2, 2)), B=sd.spec((2, 2)), error=1e-4)
    objects = [
        sd.Client(plan, threads=1).encrypt(np.eye(2), "A"),
        sd.context(depth=1, tile=2, threads=1).encrypt(np.eye(2)),
        sd.bits(parameters=QUICK, threads=1).encrypt([1, 2]),
        sd.bits(parameters=QUICK, threads=1).encrypt_text(["a", "b"], 4),
        sd.context(bootstrap="G15", security="insecure", threads=1).encrypt([1, 2]),
        EncryptedTile(
            About("", "", 0, (2, 2), (1, 1), (2, 2)), 0, (range(1), range(1)), (np.zeros(8, np.uint8),)
        ),
    ]
    return {type(x).__name__: x for x in objects}


def classes(base: type[Any]) -> Iterator[type[Any]]:
    for cls in base.__subclasses__():
        yield cls
        yield from classes(cls)


def test_every_encrypted_class_is_opaque(opaque: dict[str, Any]) -> None:
    encrypted = {name for name in sd.__all__ if name.startswith("Encrypted")}
    assert encrypted == set(opaque)
    assert encrypted <= {cls.__name__ for cls in classes(Opaque)}


SHOWN: dict[str, Callable[[Any], Any]] = {
    "bool": bool,
    "not": lambda x: not x,
    "float": float,
    "int": int,
    "complex": complex,
    "index": lambda x: range(5)[x],
    "math": math.sqrt,
    "array": np.asarray,
    "array of several": lambda x: np.array([x, x]),
    "ufunc": np.exp,
    "function": np.linalg.inv,
    "in": lambda x: 1 in x,
}
# What encrypted integers compute, encrypted.
COMPARED: dict[str, Callable[[Any], Any]] = {
    "equal": lambda x: x == x,
    "equal to a number": lambda x: x == 1,
    "equal to None": lambda x: x == None,  # noqa: E711
    "unequal": lambda x: x != x,
    "less": lambda x: x < x,
    "at least a number": lambda x: x >= 1,
    "less than an array": lambda x: np.ones((2, 2)) < x,
    "array equal": lambda x: np.array_equal(x, x),
}


@pytest.mark.parametrize("name", [*SHOWN, *COMPARED])
def test_what_would_show_values(opaque: dict[str, Any], name: str) -> None:
    for kind, x in opaque.items():
        if (
            name in COMPARED
            and kind in ("EncryptedBits", "EncryptedSmall", "EncryptedText")
            and (kind != "EncryptedText" or "equal" in name)
        ):
            continue
        with pytest.raises(sd.UnsupportedError):
            {**SHOWN, **COMPARED}[name](x)


@NEWER
def test_no_matrix_products_of_small_integers(opaque: dict[str, Any]) -> None:
    x = opaque["EncryptedSmall"]
    products: list[Callable[[], Any]] = [
        *(lambda: x @ x, lambda: x @ [1, 1], lambda: [[0, 1], [1, 0]] @ x, lambda: x @ 3),
        *(lambda: np.vecdot(x, x), lambda: np.vecmat(x, np.eye(2)), lambda: np.matvec(np.eye(2), x)),
    ]
    for product in products:
        with pytest.raises(sd.UnsupportedError, match="small integers"):
            product()


def test_none_is_a_key(opaque: dict[str, Any]) -> None:
    for x in opaque.values():
        with pytest.raises(TypeError, match="unhashable"):
            hash(x)


MASKED = np.ma.masked_invalid([[1.0, np.nan], [2.0, 3.0]])


def test_masked_arrays(opaque: dict[str, Any]) -> None:
    masked = np.ma.masked_equal(np.array([[1, 2], [3, 4]]), 3)
    ctx = sd.context(depth=1, tile=2, threads=1)
    x = ctx.encrypt(np.eye(2))
    bits = sd.bits(parameters=QUICK, threads=1)
    y = bits.encrypt([[1, 2], [3, 4]])
    plan = sd.plan(
        lambda A, B: A @ B, A=sd.spec((2, 2), max_abs=9, dtype=int), B=sd.spec((2, 2), max_abs=9, dtype=int)
    )
    client = plan.client(threads=1)
    tables = sd.Client(sd.table((2, 2), max_abs=5), threads=1)
    for refused in (
        lambda: ctx.encrypt(MASKED),
        lambda: ctx.encrypt([MASKED[0], MASKED[1]]),
        lambda: x @ MASKED,
        lambda: MASKED @ x,
        lambda: x + MASKED,
        lambda: tables.encrypt(MASKED),
        lambda: client.encrypt(masked, "A"),
        lambda: bits.encrypt(masked),
        lambda: y + masked,
        lambda: sd.plan(lambda A: A @ MASKED, A=sd.spec((2, 2)), error=1e-3),
        lambda: sd.table((2, 2), max_abs=np.ma.masked_equal([1.0, 2.0], 2)),
    ):
        with pytest.raises(sd.InputError, match="filled"):
            refused()
    assert np.abs(ctx.decrypt(ctx.encrypt(MASKED.filled(0))) - MASKED.filled(0)).max() < 1e-4


def product(**options: Any) -> Any:
    options = {"error": 1e-4, **options}
    return sd.plan(lambda A, B: A @ B, A=sd.spec((2, 2)), B=sd.spec((2, 2)), **options)


@pytest.mark.parametrize("value", [-1, 1.5, "2", None, 2**70, np.float64(2), [2]])
def test_batches(value: Any) -> None:
    with pytest.raises(sd.InputError, match="batch"):
        product(batch=value)


@pytest.mark.parametrize("value", [-1, 1.5, "2", 2**70, 10**6, None])
def test_threads(value: Any) -> None:
    plan = product(batch=np.int64(2))
    client = sd.Client(plan, threads=1)
    whole = sd.plan(
        lambda A, B: A @ B, A=sd.spec((2, 2), max_abs=9, dtype=int), B=sd.spec((2, 2), max_abs=9, dtype=int)
    )
    for refused in (
        lambda: product(threads=value),
        lambda: sd.Client(plan, threads=value),
        lambda: sd.Client.from_secret_bytes(plan, client.secret_bytes(), threads=value),
        lambda: sd.PublicClient(plan, client.public().to_bytes(), threads=value),
        lambda: sd.Server.from_bytes(plan, b"", threads=value),
        lambda: sd.Client(whole, threads=value),
        lambda: whole.keyless(threads=value),
        lambda: sd.Client(sd.table((4, 2)), threads=value),
        lambda: sd.context(depth=1, threads=value),
        lambda: sd.bits(parameters=QUICK, threads=value),
    ):
        with pytest.raises(sd.InputError, match="threads"):
            refused()


def test_a_shape_that_is_data_is_not_shown() -> None:
    for given in ((1457.88, 2.0, 3.5), [1457, 88, 12, 7], "1457"):
        with pytest.raises(sd.ShapeError) as refused:
            sd.spec(given)
        assert "1457" not in str(refused.value)
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for series in (pandas.Series([1457.88, 2.0]), polars.Series([1457.88, 2.0])):
        assert sd.spec(series, max_abs=2000).shape == (2,)
        with pytest.raises(sd.InputError, match="over max_abs") as over:
            sd.spec(series)
        assert "1457" not in str(over.value)


def test_numbers() -> None:
    wrong: list[Any] = ["1", b"1", [1.0], True, 1j, np.array([1.0]), 10**400]
    for value in wrong:
        with pytest.raises(sd.InputError, match="number"):
            sd.spec((2, 2), max_abs=value)
        with pytest.raises(sd.InputError, match="number"):
            sd.spec((2, 2), max_abs=value, dtype=int)
        with pytest.raises(sd.InputError, match="number"):
            sd.Spec((2, 2), value)
        with pytest.raises(sd.InputError, match="number"):
            product(error=value)
    right: list[Any] = [1, 1.0, np.float32(1), np.int8(1), Fraction(1), np.array(1.0)]
    for value in right:
        assert sd.spec((2, 2), max_abs=value).max_abs == 1
    assert sd.spec((2, 2), max_abs=2**60 + 1, dtype=int).max_abs == 2**60 + 1
    for value in (0, -1, math.nan, math.inf):
        with pytest.raises(sd.InputError, match="above zero"):
            sd.spec((2, 2), max_abs=value)
    for shape in ((2.5, 2), "22", (2, "2"), (2, -2), (), (0,), (1, 2, 3), 2.0):
        with pytest.raises(sd.ShapeError):
            sd.spec(shape)
    with pytest.raises(sd.InputError, match=r"X / bounds, or take sudare\.table"):
        sd.spec((3, 2), max_abs=[1, 5])  # type: ignore[arg-type]
    with pytest.raises(sd.InputError, match="plain"):
        sd.spec((2, 2), plain="no")  # type: ignore[arg-type]
    for options in (
        {"security": 128.0},
        {"security": "128"},
        {"memory": -1},
        {"memory": 1.5},
        {"memory": "8GB"},
    ):
        with pytest.raises(sd.InputError):
            product(**options)


def test_contexts_and_tables() -> None:
    for options in ({"depth": 1.5}, {"depth": -1}, {"scale_bits": 40.5}, {"tile": "4"}, {"security": 128.5}):
        with pytest.raises(sd.InputError):
            sd.context(**options)
    ctx = sd.context(depth=1, tile=2, threads=1)
    for bound in ("1", [1.0], True):
        with pytest.raises(sd.InputError, match="max_abs"):
            ctx.encrypt(np.eye(2), max_abs=bound)  # type: ignore[arg-type]
    for shape in ((4.5, 2), (-4, 2), ("4", 2)):
        with pytest.raises(sd.InputError):
            sd.table(shape)
    for bounds in ("1", ["1", "2"], [None, 1], [True, False]):
        with pytest.raises(sd.InputError):
            sd.table((4, 2), max_abs=bounds)
    with pytest.raises(sd.InputError):
        sd.table((4, 2), security="128")  # type: ignore[call-overload]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_no_numbers(value: float) -> None:
    weights = np.ones((3, 2))
    weights[1, 0] = value
    for function in (lambda A: A @ weights, lambda A: (A @ weights) * 2, lambda A: A @ weights[:, 0]):
        with pytest.raises(sd.InputError, match=r"weights|plain matrix"):
            sd.plan(function, A=sd.spec((2, 3)), error=1e-3)
    with pytest.raises(sd.InputError, match=rf"^weights is {value} at \(1, 0\)"):
        sd.plan(lambda A: A @ weights, A=sd.spec((2, 3)), error=1e-3)
    with pytest.raises(sd.InputError, match=r"shape \(2, 3\) in the planned function .* at \(0, 1\)"):
        sd.plan(lambda A: A + weights.T, A=sd.spec((2, 3)), error=1e-3)


def test_specifications_travel_as_text() -> None:
    spec = sd.table((4, 2), max_abs=[1, 0.1], security=192)
    again = sd.Plan.from_json(spec.to_json())
    assert again == spec
    assert hash(again) == hash(spec)
    assert again != sd.table((4, 2), max_abs=[1, 0.1])
    assert spec != spec.to_json()
    assert again.max_abs.tolist() == [1, 0.1]
    texts = (
        "",
        "{}",
        "[1]",
        '{"rows": 4, "max_abs": 1, "security": 128}',
        spec.to_json().replace('"rows": 4', '"rows": 5'),
    )
    for text in texts:
        with pytest.raises(sd.FormatError):
            sd.Plan.from_json(text)
