"""What the fuzz targets in Python check, for their seeds and some changes; `make fuzz` goes on from there."""

from __future__ import annotations

import importlib
import random
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(params=["load", "remote"])
def target(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "fuzz" / "fuzz_targets"))
    module = importlib.import_module(request.param)
    yield module
    del sys.modules[request.param]


def test_what_comes_from_anybody_is_taken_or_refused(target: Any) -> None:
    seeds = target.seeds()
    assert sum(map(target.check, seeds)) >= 4
    rng, taken = random.Random(2024), 0
    # What a server says is waited for.
    for at in range(400 if target.__name__ == "load" else 60):
        data = seeds[at % len(seeds)]
        for _ in range(rng.randint(1, 3)):
            data = target.mutate(data, rng.getrandbits(32))
        taken += target.check(data)
    assert taken > (5 if target.__name__ == "load" else 0)
