"""Servers on devices: what is said of them, and products on the emulator where the build has it."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sudare as sd
from numpy.typing import NDArray
from sudare._devices import kernels

FOUND = {device.name: device for device in sd.devices()}
EMULATED = pytest.mark.skipif("emulator" not in FOUND, reason="this build has no emulator")
Floats = NDArray[np.float64]


def test_devices_say_what_there_is_and_why_there_is_no_card() -> None:
    cpu = sd.devices()[0]
    assert (cpu.name, cpu.missing) == ("cpu", None)
    assert (cpu.memory or 1) > 0
    card = FOUND.get("cuda")
    if card is not None:
        assert "driver" in str(card.missing) or "device" in str(card.missing)
        assert card.memory is None
    else:
        assert (FOUND["cuda:0"].memory or 0) > 1 << 30
        assert FOUND["cuda:0"].model


@pytest.mark.skipif("cuda" not in FOUND, reason="this machine has a card")
def test_a_machine_without_a_card_says_what_lacks(product: Any) -> None:
    _, _, server = product
    with pytest.raises(sd.SudareError, match=r"install driver|counted from 0"):
        server.to("cuda")
    with pytest.raises(sd.InputError, match=r"sudare.devices\(\)"):
        server.to("abacus")
    assert (server.device, server.to("cpu").device) == ("cpu", "cpu")


def planned(method: str, shape: tuple[int, int], *, batch: int = 1) -> tuple[sd.Plan, sd.Client]:
    """A plan by one method, whichever is the fastest."""
    spec = sd.spec(shape)
    plan = sd.plan(lambda A, B: A @ B, A=spec, B=spec, error=1e-3, batch=batch, method=method)
    return plan, sd.Client(plan)


@EMULATED
@pytest.mark.parametrize("method", ["coefficient", "improved3d"])
def test_products_on_the_emulator_are_those_of_the_processor(
    method: str, matrices: Callable[..., list[Floats]]
) -> None:
    plan, client = planned(method, (4, 4))
    (a, b), here = matrices((4, 4), (4, 4)), client.server()
    there = here.to("emulator")
    assert there.device == "emulator"
    assert "on emulator" in repr(there)
    A, B = client.encrypt(a, "A"), client.encrypt(b, "B")
    moved = there.bind(A).to("emulator")
    C = moved @ there.bind(B)
    assert (C.device, moved.device, A.device) == ("emulator", "emulator", "cpu")
    want = A @ B
    assert C.to_bytes() == want.to_bytes()
    assert C.to("cpu").device == "cpu"
    assert C.to("cpu").to_bytes() == want.to_bytes()
    assert pickle.loads(pickle.dumps(C)).to_bytes() == want.to_bytes()
    np.testing.assert_allclose(client.decrypt(C), a @ b, atol=plan.error)
    assert there.counters["mult"] == here.counters["mult"] > 0
    with pytest.raises(sd.UnsupportedError, match="bound to no server on emulator"):
        want.to("emulator")


@EMULATED
def test_a_sum_with_a_product_that_takes_no_key(matrices: Callable[..., list[Floats]]) -> None:
    # Three parts of a product and two of what is added.
    spec = sd.spec((4, 4))
    plan = sd.plan(lambda A, B, C: A @ B + C, A=spec, B=spec, C=spec, error=1e-3, method="coefficient")
    client = sd.Client(plan)
    here = client.server()
    there = here.to(FOUND["emulator"])
    operands = [
        client.encrypt(x, name) for x, name in zip(matrices((4, 4), (4, 4), (4, 4)), "ABC", strict=True)
    ]
    a, b, c = [there.bind(x) for x in operands]
    found = a @ b + c
    a, b, c = operands
    assert found.device == "emulator"
    assert found.to_bytes() == (a @ b + c).to_bytes()


def test_plain_operands_are_wherever_they_are_used() -> None:
    A, W = sd.spec((4, 4)), sd.spec((4, 4), plain=True)
    plan = sd.plan(lambda A, W: (A @ W) @ W.T, A=A, W=W, error=1e-2)
    w = sd.Client(plan).server().plain(np.eye(4), "W")
    assert w.device == w.to("cpu").device == "cpu"
    with pytest.raises(sd.UnsupportedError, match="bound to no server on cuda"):
        w.to("cuda")


def test_what_names_no_device(product: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, server = product
    assert server.to(sd.devices()[0]).device == "cpu"
    with pytest.raises(sd.InputError, match="a device is"):
        server.to(0)
    # Without a folder for compiled kernels they are compiled again, and no more.
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    assert kernels()[1] is None


@EMULATED
@pytest.mark.parametrize("method", ["jiang-bsgs", "module"])
def test_other_methods_give_the_same_bytes(method: str, matrices: Callable[..., list[Floats]]) -> None:
    plan, client = planned(method, (4, 4))
    a, b = matrices((4, 4), (4, 4))
    A, B, there = client.encrypt(a, "A"), client.encrypt(b, "B"), client.server().to("emulator")
    found = there.bind(A) @ there.bind(B)
    assert found.device == "emulator"
    assert found.to_bytes() == (A @ B).to_bytes()
    np.testing.assert_allclose(client.decrypt(found), a @ b, atol=plan.error)


@EMULATED
def test_an_expression_on_the_emulator(matrices: Callable[..., list[Floats]]) -> None:
    spec = sd.spec((3, 3), max_abs=1.0)
    plan = sd.plan(lambda A, B: ((A @ B) * 0.25).T * A - B, A=spec, B=spec, error=1e-2)
    assert plan.on_devices
    client = sd.Client(plan)
    (a, b), there = matrices((3, 3), (3, 3)), client.server().to("emulator")
    A, B = client.encrypt(a, "A"), client.encrypt(b, "B")
    X, Y = there.bind(A), there.bind(B)
    found = ((X @ Y) * 0.25).T * X - Y
    assert found.device == "emulator"
    assert found.to_bytes() == (((A @ B) * 0.25).T * A - B).to_bytes()
    np.testing.assert_allclose(client.decrypt(found), (a @ b * 0.25).T * a - b, atol=plan.error)


def test_what_devices_do_not_compute_is_known_before_there_are_keys() -> None:
    integers = sd.spec((4, 4), max_abs=9, dtype=int)
    plan = sd.plan(lambda A, B: A @ B, A=integers, B=integers)
    assert not plan.on_devices
    if "emulator" in FOUND:
        with pytest.raises(sd.PlanError, match=r"computes integers.*work on the processor"):
            sd.Client(plan).server().to("emulator")
