"""Computes a traced expression with NumPy: what the planner is given, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def _taken(
    of: Floats, axis: int, *, start: int, step: int, count: int, at: int, stride: int, size: int
) -> Floats:
    """Lines in other places."""
    lines = of if axis == 0 else of.T
    assert all(0 <= start + step * i < len(lines) for i in range(count))
    out = np.zeros((size, lines.shape[1]))
    out[at : at + stride * count : stride] = [lines[start + step * i] for i in range(count)]
    return out if axis == 0 else out.T


def evaluate(text: str, values: Mapping[str, Floats]) -> Any:
    """The value of an expression in JSON, for inputs with rows and columns."""
    expression = json.loads(text)
    done: list[Floats] = []

    def one(node: dict[str, Any]) -> Any:
        op = node["op"]
        if op == "input":
            entry = expression["inputs"][node["input"]]
            value = values[entry["name"]]
            assert value.shape == (entry["rows"], entry["cols"])
            assert np.abs(value).max() <= entry["max_abs"]
            return np.asarray(value)
        of, *others = (done[operand] for operand in node["operands"])
        if others:
            assert op == "matmul" or of.shape == others[0].shape
            results = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "matmul": np.matmul}
            return np.asarray(results[op](of, *others))
        if op == "sum":
            return np.asarray(of.sum(node["axis"], keepdims=True))
        if op == "transpose":
            return np.asarray(of.T)
        if op == "neg":
            return -of
        if op == "take":
            return _taken(of, node["axis"], **node["lines"])
        if op == "repeat":
            assert of.shape[node["axis"]] == 1
            return np.repeat(of, node["size"], node["axis"])
        if op == "bounded":
            assert np.abs(of).max() <= node["max_abs"] * (1 + 1e-12)
            return of
        if op == "polynomial":
            domain = node["low"], node["high"]
            return np.polynomial.Chebyshev(node["coefficients"], domain=domain)(of)
        return of * node["by"] if op == "scale" else of + node["by"]

    for node in expression["nodes"]:
        done.append(one(node))
    return done[expression["output"]]
