"""The bound on dual hybrid attacks, and the primal attack, both with the rotations of a ring."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture(name="script", scope="module")
def _script() -> ModuleType:
    sys.path.insert(0, str(SCRIPTS))
    try:
        return importlib.import_module("dual_bound")
    finally:
        sys.path.remove(str(SCRIPTS))


@pytest.mark.parametrize(
    ("log_n", "weight", "log_q", "bits"),
    [
        (14, 36, 46, 129.10),
        (15, 30, 54, 128.79),
        (15, 34, 82, 131.34),
        (15, 34, 92, 128.13),
        (16, 26, 66, 128.25),
        (16, 28, 96, 128.48),
        (16, 28, 95, 128.78),
        (16, 30, 121, 130.41),
        (17, 24, 100, 129.12),
    ],
)
def test_rows_have_128_bits_and_two_less_do_not(
    script: ModuleType, log_n: int, weight: int, log_q: float, bits: float
) -> None:
    assert script.least(1 << log_n, log_q, weight) == pytest.approx(bits, abs=0.01)
    if log_q not in (82, 95):
        assert script.least(1 << log_n, log_q, weight - 2) < 128


def test_rotations_cost_bits(script: ModuleType) -> None:
    assert script.least(1 << 15, 82, 32) == pytest.approx(125.31, abs=0.01)
    assert script.least(1 << 16, 96, 26) == pytest.approx(120.79, abs=0.01)
    assert script.least(1 << 16, 96, 28, rotations=False) == pytest.approx(138.59, abs=0.01)
    assert script.one_of(-900.0, 1 << 16) < -880
    assert script.one_of(0.0, 4) == 0
