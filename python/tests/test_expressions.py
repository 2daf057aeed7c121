"""Whole expressions on ciphertexts, each operation against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sudare as sd

Expression = Callable[[Any, Any], Any]

EXPRESSIONS: dict[str, Expression] = {
    "sum of matrices": lambda A, B: A + B,
    "difference": lambda A, B: A - B,
    "elementwise product": lambda A, B: A * B,
    "scaled and shifted": lambda A, B: 0.5 * A - B * 3 + 0.25,
    "transpose": lambda A, B: (A - 2 * B).T,
    "sum of rows": lambda A, B: (A + B).sum(axis=0),
    "sum of columns": lambda A, B: (A - B).sum(axis=1),
    "product worked on further": lambda A, B: (A @ B.T) * 2 + 1,
    "two products": lambda A, B: (A @ B.T) @ A,
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expression_on_ciphertexts_agrees_with_numpy(name: str) -> None:
    rng = np.random.default_rng(7)
    a, b = rng.uniform(-1, 1, (5, 6)), rng.uniform(-1, 1, (5, 6))
    expression = EXPRESSIONS[name]
    spec = sd.spec((5, 6), max_abs=1)
    plan = sd.plan(expression, A=spec, B=spec, error=1e-3, security=128)
    client = sd.Client(plan)
    server = client.server()
    x, y = server.bind(client.encrypt(a, "A")), server.bind(client.encrypt(b, "B"))
    got = client.decrypt(expression(x, y))
    wanted = expression(a, b)
    assert got.shape == wanted.shape
    assert np.abs(got - wanted).max() < 1e-3


BATCHES: list[Callable[[Any], Any]] = [
    lambda A: A @ np.full((5, 3), 0.5) + np.arange(3.0),
    lambda A: A * np.arange(5.0) / 4,
    lambda A: (A + np.arange(5.0)) @ np.ones((5, 2)),
    lambda A: A - np.ones((6, 5)) * np.arange(5.0),
    lambda A: np.arange(6.0)[:, None] * A,
]


@pytest.mark.parametrize("at", range(len(BATCHES)))
def test_constants_in_a_batch(at: int) -> None:
    function, x = BATCHES[at], np.random.default_rng(at).uniform(-1, 1, (4, 6, 5))
    plan = sd.plan(function, A=sd.spec((6, 5)), error=1e-3, batch=4, security="insecure")
    client = plan.client(threads=1)
    client.server()
    assert np.abs(client.decrypt(function(client.encrypt(x))) - function(x)).max() <= plan.error


def test_a_layer_takes_no_keys() -> None:
    rng = np.random.default_rng(8)
    x, w, b = rng.uniform(-1, 1, (6, 5)), rng.uniform(-1, 1, (5, 3)), rng.uniform(-1, 1, 3)

    def layer(X: Any, W: Any, b: Any) -> Any:
        return 2 * ((X[1:] - 0.5) @ W) + b

    for plain in (False, True):
        plan = sd.plan(
            layer, X=sd.spec((6, 5)), W=sd.spec((5, 3), plain=plain), b=sd.spec(3, plain=plain), error=1e-3
        )
        assert not plan.summary["keys"]
        client = plan.client()
        server = client.server()
        given = [server.plain(m, n) if plain else client.encrypt(m, n) for m, n in ((w, "W"), (b, "b"))]
        found = client.decrypt(layer(client.encrypt(x, "X"), *given))
        assert np.abs(found - layer(x, w, b)).max() <= plan.error
