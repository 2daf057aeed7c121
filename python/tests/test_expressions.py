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
