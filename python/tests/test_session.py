"""Clients, servers and encrypted matrices against NumPy, and what they refuse."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sudare as sd
from conftest import ERROR, Floats, Session
from hypothesis import given, settings
from hypothesis import strategies as st

Matrices = Callable[..., list[Floats]]


def multiply(plan: sd.Plan, left: Floats, right: Floats) -> Floats:
    client = sd.Client(plan, threads=2)
    server = client.server()
    product = server.bind(client.encrypt(left, "A")) @ client.encrypt(right, "B")
    assert product.shape == (left @ right).shape
    found: Floats = client.decrypt(product)
    return found


def product_plan(a: tuple[int, ...], b: tuple[int, ...], max_abs: float = 1, **options: Any) -> sd.Plan:
    error: float = options.pop("error", ERROR)
    left, right = sd.spec(a, max_abs=max_abs), sd.spec(b, max_abs=max_abs)
    made: sd.Plan = sd.plan(lambda A, B: A @ B, A=left, B=right, error=error, **options)
    return made


@settings(max_examples=6, deadline=None)
@given(st.tuples(*[st.integers(1, 40)] * 3), st.sampled_from([0.5, 1.0, 10.0]), st.integers(0, 2**32 - 1))
def test_any_shape(sides: tuple[int, int, int], bound: float, seed: int) -> None:
    m, k, n = sides
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-bound, bound, (m, k)), rng.uniform(-bound, bound, (k, n))
    got = multiply(product_plan((m, k), (k, n), bound), a, b)
    assert np.abs(got - a @ b).max() < ERROR


def test_worst_values() -> None:
    a, b = np.full((16, 24), -1.0), np.full((24, 8), 1.0)
    assert np.abs(multiply(product_plan((16, 24), (24, 8)), a, b) - a @ b).max() < ERROR


def test_inputs_of_every_kind(product: Session) -> None:
    _, client, _ = product
    b = client.encrypt(np.ones((7, 3), dtype=np.float32), "B")
    rows = [[1, 0, 1, 0, 1, 0, 1]] * 5
    arrays: list[Any] = [
        rows,
        np.array(rows, dtype=bool),
        np.asfortranarray(np.array(rows)),
        np.array(rows * 2, dtype=np.int8)[::2],
        np.array(rows, dtype=">f8"),
    ]
    for a in arrays:
        got = client.decrypt(client.encrypt(a, "A") @ b)
        assert got.dtype == np.float64
        assert np.abs(got - 4).max() < ERROR


def test_numpy_functions(product: Session, matrices: Matrices) -> None:
    _, client, _ = product
    a, b = matrices((5, 7), (7, 3))
    x, y = client.encrypt(a, "A"), client.encrypt(b, "B")
    for z in (x @ y, np.matmul(x, y), np.dot(x, y), x.dot(y)):
        assert np.abs(client.decrypt(z) - a @ b).max() < ERROR


def test_operands_stay(product: Session, matrices: Matrices) -> None:
    _, client, _ = product
    a, b = matrices((5, 7), (7, 3))
    x, y = client.encrypt(a, "A"), client.encrypt(b, "B")
    before = x.to_bytes(), y.to_bytes()
    _ = x @ y
    for refused in (lambda: y @ x, lambda: x + x, lambda: np.exp(x), lambda: x @ x):
        with pytest.raises(sd.SudareError):
            refused()
    assert (x.to_bytes(), y.to_bytes()) == before


def test_vectors(matrices: Matrices) -> None:
    a, v = matrices((6, 4), (4,))
    plan = sd.plan(lambda A, v: A @ v, A=sd.spec((6, 4)), v=sd.spec(4), error=ERROR)
    client = sd.Client(plan)
    client.server()
    z = client.encrypt(a, "A") @ client.encrypt(v, "v")
    assert z.shape == (6,)
    assert " (6,) " in repr(z)
    got = client.decrypt(z)
    assert got.shape == (6,)
    assert np.abs(got - a @ v).max() < ERROR


def test_batches(matrices: Matrices) -> None:
    a, b = matrices((9, 4, 5), (9, 5, 3))
    plan = sd.plan(lambda A, B: A @ B, A=sd.spec((4, 5)), B=sd.spec((5, 3)), error=ERROR, batch=9)
    client = sd.Client(plan)
    client.server()
    z = client.encrypt(a, "A") @ client.encrypt(b, "B")
    assert z.shape == (9, 4, 3)
    assert np.abs(client.decrypt(z) - a @ b).max() < ERROR
    with pytest.raises(sd.ShapeError):
        client.encrypt(a[:8], "A")


def test_a_batch_of_one_is_no_matrix(matrices: Matrices) -> None:
    (a, w) = matrices((4, 3), (3, 2))
    plan = sd.plan(lambda A, W: A @ W, A=sd.spec((4, 3)), W=sd.spec((3, 2), plain=True), error=ERROR)
    client = sd.Client(plan)
    server = client.server()
    with pytest.raises(sd.ShapeError, match=r"not a batch of shape \(1, 4, 3\)"):
        client.encrypt(a[None], "A")
    with pytest.raises(sd.ShapeError, match=r"\(1, 3, 2\)"):
        server.plain(w[None], "W")
    with pytest.raises(sd.ShapeError, match=r"\(1, 3, 2\)"):
        client.encrypt(a, "A") @ w[None]


def test_repr(product: Session, matrices: Matrices) -> None:
    plan, client, server = product
    (a,) = matrices((5, 7))
    x = client.encrypt(a, "A")
    assert re.fullmatch(
        r"<sudare ckks \(5, 7\) float64 up to 1, level \d+/\d+, \d+ ct × \d+\.\d MB>", repr(x)
    )
    assert (x.max_abs, x.error) == (1.0, None)
    # A result shows what is promised of it beside how large it may be.
    z = x @ client.encrypt(matrices((7, 3))[0], "B")
    assert (z.max_abs, z.error) == (14.0, plan.error)
    assert re.match(r"<sudare ckks \(5, 3\) float64 up to 14 ± \d\.\de-\d+, level ", repr(z))
    assert "secret key hidden" in repr(client)
    assert "no secret" in repr(server)
    assert plan.method in repr(plan)
    assert str(plan).count("\n") > 5


def test_pickle(product: Session, matrices: Matrices) -> None:
    plan, client, server = product
    a, b = matrices((5, 7), (7, 3))
    parcel = pickle.dumps((plan, server, client.encrypt(a, "A"), client.encrypt(b, "B")))
    plan2, server2, x, y = pickle.loads(parcel)
    assert plan2 == plan
    assert hash(plan2) == hash(plan)
    assert server2.threads == server.threads
    with pytest.raises(sd.UnsupportedError, match="bound to no server"):
        x @ y
    for z in (server2.bind(x) @ y, x @ server2.bind(y), client.encrypt(a, "A") @ y):
        assert np.abs(client.decrypt(pickle.loads(pickle.dumps(z))) - a @ b).max() < ERROR
    again = copy.deepcopy(x)
    assert again.to_bytes() == x.to_bytes()


def test_no_secret_pickles(product: Session) -> None:
    plan, client, server = product
    for thing in (client, [client], copy):
        with pytest.raises((sd.UnsupportedError, TypeError)):
            pickle.dumps(thing)
    with pytest.raises(sd.UnsupportedError, match="secret_bytes"):
        copy.copy(client)
    secret = client.secret_bytes()
    for public in (
        server.to_bytes(),
        client.public().to_bytes(),
        plan.to_json().encode(),
        pickle.dumps(server),
    ):
        # No page of the key's bytes stands in what leaves the client.
        assert not any(secret[i : i + 64] in public for i in range(4096, len(secret) - 64, 4096))


def test_secret_bytes(product: Session, matrices: Matrices) -> None:
    plan, client, server = product
    a, b = matrices((5, 7), (7, 3))
    again = sd.Client.from_secret_bytes(plan, client.secret_bytes(), threads=1)
    z = server.bind(again.encrypt(a, "A")) @ client.encrypt(b, "B")
    assert np.abs(again.decrypt(z) - a @ b).max() < ERROR


def test_public_client(product: Session, matrices: Matrices) -> None:
    plan, client, server = product
    a, b = matrices((5, 7), (7, 3))
    friend = sd.PublicClient(plan, client.public().to_bytes())
    z = server.bind(friend.encrypt(a, "A")) @ friend.encrypt(b, "B")
    assert np.abs(client.decrypt(z) - a @ b).max() < ERROR
    assert not hasattr(friend, "decrypt")


def test_another_process(product: Session, matrices: Matrices, tmp_path: Any) -> None:
    plan, client, server = product
    a, b = matrices((5, 7), (7, 3))
    plan.save(tmp_path / "plan.json")
    files = {
        "keys": server.to_bytes(),
        "a": client.encrypt(a, "A").to_bytes(),
        "b": client.encrypt(b, "B").to_bytes(),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    code = """
from pathlib import Path
import sudare as sd
plan = sd.load("plan.json")
server = sd.Server.from_bytes(plan, Path("keys").read_bytes(), threads=1)
a, b = (sd.Encrypted.from_bytes(plan, Path(n).read_bytes()) for n in "ab")
Path("c").write_bytes((server.bind(a) @ b).to_bytes())
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    c = sd.Encrypted.from_bytes(plan, (tmp_path / "c").read_bytes())
    assert np.abs(client.decrypt(c) - a @ b).max() < ERROR


def test_bad_values(product: Session) -> None:
    _, client, _ = product
    good = np.zeros((5, 7))
    for bad in (np.nan, np.inf, -np.inf, 1.0001):
        a = good.copy()
        a[2, 3] = bad
        with pytest.raises(sd.InputError, match=r"\(2, 3\)"):
            client.encrypt(a, "A")
    for shape in ((7, 5), (5, 6), (35,), (2, 5, 7)):
        with pytest.raises(ValueError, match=r"\d"):
            client.encrypt(np.zeros(shape), "A")
    with pytest.raises(sd.ShapeError):
        client.encrypt(np.zeros((0, 7)), "A")
    with pytest.raises(sd.PlanError, match=r"A, B"):
        client.encrypt(good, "C")
    for thing in (np.zeros((5, 7), dtype=complex), [["a"] * 7] * 5, None):
        with pytest.raises(sd.UnsupportedError):
            client.encrypt(thing, "A")
    with pytest.raises(sd.UnsupportedError, match="already"):
        client.encrypt(client.encrypt(good, "A"), "A")
    with pytest.raises(sd.UnsupportedError):
        client.decrypt(good)


def test_bad_bytes(product: Session, matrices: Matrices) -> None:
    plan, client, server = product
    (a,) = matrices((5, 7))
    data = client.encrypt(a, "A").to_bytes()
    rng = np.random.default_rng(3)
    for cut in (0, 1, 63, 64, 4096, len(data) // 2, len(data) - 1):
        with pytest.raises(sd.SudareError):
            sd.Encrypted.from_bytes(plan, data[:cut])
    for at in rng.integers(0, len(data), 100):
        flipped = bytearray(data)
        flipped[at] ^= 1 << int(rng.integers(8))
        with pytest.raises(sd.SudareError):
            sd.Encrypted.from_bytes(plan, bytes(flipped))
    for read in (sd.Server.from_bytes, sd.Client.from_secret_bytes, sd.PublicClient):
        with pytest.raises(sd.SudareError):
            read(plan, data)
    with pytest.raises(sd.FormatError):
        sd.Plan.from_json("{}")
    with pytest.raises(sd.SudareError):
        sd.Encrypted.from_bytes(plan, server.to_bytes())


def test_strangers(product: Session, matrices: Matrices) -> None:
    plan, client, server = product
    a, b = matrices((5, 7), (7, 3))
    stranger = sd.Client(plan)
    with pytest.raises(sd.KeyMismatchError):
        _ = server.bind(stranger.encrypt(a, "A")) @ client.encrypt(b, "B")
    with pytest.raises(sd.KeyMismatchError):
        stranger.decrypt(client.encrypt(a, "A") @ client.encrypt(b, "B"))
    other = sd.Client(product_plan((5, 7), (7, 4)))
    with pytest.raises(sd.KeyMismatchError):
        _ = client.encrypt(a, "A") @ other.encrypt(np.ones((7, 4)), "B")


def test_plans(tmp_path: Any) -> None:
    plan = product_plan((3, 4), (4, 5))
    assert sd.Plan.from_json(plan.to_json()) == plan
    plan.save(tmp_path / "plan.json")
    assert sd.load(tmp_path / "plan.json") == plan
    assert plan.inputs == {"A": sd.Spec((3, 4), 1.0), "B": sd.Spec((4, 5), 1.0)}
    assert plan.error <= ERROR
    assert any(c["verdict"] == "taken" for c in plan.considered)
    assert plan.summary["security_bits"] >= 128
    named = product_plan((3, 4), (4, 5), method=plan.method)
    assert named.method == plan.method
    for options in ({"error": 1e-40}, {"security": 127}, {"batch": 0}, {"method": "abacus"}, {"memory": 1}):
        with pytest.raises(sd.PlanError):
            product_plan((3, 4), (4, 5), **options)
    with pytest.raises(sd.SudareError):
        sd.Plan.from_json(plan.to_json().replace('"rows": 3', '"rows": 4'))


def test_the_lock_is_released(product: Session, matrices: Matrices) -> None:
    _, client, _ = product
    (a,) = matrices((5, 7))
    ticks, stop = 0, threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not stop.is_set():
            ticks += 1
            time.sleep(0.0002)

    thread = threading.Thread(target=tick)
    thread.start()
    started = time.monotonic()
    while time.monotonic() - started < 0.3:
        client.encrypt(a, "A")
    stop.set()
    thread.join()
    assert ticks > 20


def test_many_threads_at_once(product: Session, matrices: Matrices) -> None:
    _, client, _ = product
    a, b = matrices((5, 7), (7, 3))
    errors = []

    def work() -> None:
        z = client.encrypt(a, "A") @ client.encrypt(b, "B")
        errors.append(np.abs(client.decrypt(z) - a @ b).max())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(errors) == 4
    assert max(errors) < ERROR


def test_thread_counts_agree(matrices: Matrices) -> None:
    a, b = matrices((12, 12), (12, 12))
    plan = product_plan((12, 12), (12, 12))
    client = sd.Client(plan, threads=1)
    one = client.server()
    three = sd.Server.from_bytes(plan, one.to_bytes(), threads=3)
    assert (one.threads, three.threads) == (1, 3)
    x, y = client.encrypt(a, "A"), client.encrypt(b, "B")
    assert (x @ y).to_bytes() == (three.bind(x) @ y).to_bytes()


def test_counters(product: Session, matrices: Matrices) -> None:
    _, client, server = product
    a, b = matrices((5, 7), (7, 3))
    before = server.counters
    _ = client.encrypt(a, "A") @ client.encrypt(b, "B")
    after = server.counters
    assert set(after) == {"add", "rot", "cmult", "mult", "key_switches"}
    assert after["mult"] > before["mult"]


def test_release_keeps_its_promise(matrices: Matrices) -> None:
    a, b = matrices((3, 4), (4, 2))
    for count, security, error in ((5, 30, 1e-4), (100, 40, 1e-3)):
        plan = product_plan((3, 4), (4, 2), error=error, release=sd.Release(count, security))
        assert plan.release == sd.Release(count, security)
        assert sd.Plan.from_json(plan.to_json()).release == plan.release
        client = sd.Client(plan)
        client.server()
        z = client.encrypt(a, "A") @ client.encrypt(b, "B")
        private = np.abs(client.decrypt(z, private=True) - a @ b).max()
        for _ in range(5):
            released = np.abs(client.decrypt(z, release=True) - a @ b).max()
            assert 1e3 * private < released <= plan.error <= error
        assert client.releases_left == count - 5
    with pytest.raises(sd.PlanError, match="fewer results"):
        product_plan((3, 4), (4, 2), error=1e-12, release=sd.Release(1000))


def test_releases_are_counted_with_the_key(matrices: Matrices) -> None:
    a, b = matrices((3, 4), (4, 2))
    plan = product_plan((3, 4), (4, 2), error=1e-3, release=sd.Release(2, 20))
    client = sd.Client(plan)
    client.server()
    z = client.encrypt(a, "A") @ client.encrypt(b, "B")
    client.decrypt(z, release=True)
    again = sd.Client.from_secret_bytes(plan, client.secret_bytes())
    assert again.releases_left == 1
    again.decrypt(z, release=True)
    with pytest.raises(sd.ReleaseError, match="all are used"):
        again.decrypt(z, release=True)
    assert np.abs(again.decrypt(z, private=True) - a @ b).max() < 1e-3
    # The key's first release fixed how many there are.
    other = product_plan((3, 4), (4, 2), error=1e-3, release=sd.Release(3, 20))
    if other._core.hash_hex() != plan._core.hash_hex():
        try:
            moved = sd.Client.from_secret_bytes(other, again.secret_bytes())
        except sd.KeyMismatchError:
            return
        assert moved.releases_left == 0


def test_a_declared_release_wants_a_word(matrices: Matrices, tmp_path: Path) -> None:
    a, b = matrices((3, 4), (4, 2))
    plan = product_plan((3, 4), (4, 2), error=1e-3, release=sd.Release(2, 20))
    client = sd.Client(plan)
    client.server()
    z = client.encrypt(a, "A") @ client.encrypt(b, "B")
    for value in (z, sd.store(tmp_path / "z", z)):
        with pytest.raises(sd.ReleaseError, match=r"release=True .* private=True"):
            client.decrypt(value)
        assert np.abs(client.decrypt(value, private=True) - a @ b).max() < 1e-3
    with pytest.raises(sd.ReleaseError, match="not both"):
        client.decrypt(z, release=True, private=True)
    with pytest.raises(sd.UnsupportedError, match="private is True or False"):
        client.decrypt(z, private=1)  # type: ignore[arg-type]
    assert client.releases_left == 2


def test_the_larger_count_of_releases_survives_a_save(matrices: Matrices, tmp_path: Path) -> None:
    a, b = matrices((3, 4), (4, 2))
    plan = product_plan((3, 4), (4, 2), error=1e-3, release=sd.Release(4, 20))
    first, path = sd.Client(plan), tmp_path / "secret.key"
    first.server()
    first.save(path)
    second = sd.load(path, plan)
    z = first.encrypt(a, "A") @ first.encrypt(b, "B")
    answer = sd.Encrypted.from_bytes(plan, z.to_bytes())
    for _ in range(3):
        second.decrypt(answer, release=True)
    second.save(path)
    # The older copy's count is the smaller one.
    first.save(path)
    assert first.releases_left == sd.load(path, plan).releases_left == 1
    first.decrypt(z, release=True)
    first.save(path)
    second.save(path)
    with pytest.raises(sd.ReleaseError, match="all are used"):
        sd.load(path, plan).decrypt(answer, release=True)


def test_a_save_waits_for_who_counts_in_the_file(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    plan = product_plan((3, 4), (4, 2), error=1e-3, release=sd.Release(4, 20))
    client, path = sd.Client(plan), tmp_path / "secret.key"
    client.save(path)
    done = threading.Event()
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)

        def save() -> None:
            client.save(path)
            done.set()

        saving = threading.Thread(target=save)
        saving.start()
        assert not done.wait(0.3)
    saving.join()
    assert done.is_set()


def test_release_refusals(product: Session, matrices: Matrices) -> None:
    _, client, _ = product
    a, b = matrices((5, 7), (7, 3))
    z = client.encrypt(a, "A") @ client.encrypt(b, "B")
    with pytest.raises(sd.ReleaseError, match=r"release=Release\(count, security\)"):
        client.decrypt(z, release=True)
    assert client.releases_left == 0
    with pytest.raises(sd.UnsupportedError, match="release=True"):
        client.decrypt(z, release=sd.Release(1))  # type: ignore[arg-type]
    for count, security in (
        (1, 0),
        (1, 19),
        (1, 65),
        (1, 120),
        (0, 30),
        (-1, 30),
        (2**200, 30),
        (1, -(2**99)),
    ):
        with pytest.raises(sd.PlanError, match="20 to 64 bits"):
            sd.Release(count, security)
    with pytest.raises(sd.UnsupportedError, match=r"sudare\.Release"):
        product_plan((3, 4), (4, 2), release=(3, 30))
    with pytest.raises(sd.PlanError, match="release"):
        sd.plan(
            lambda A, B: A @ B,
            A=sd.spec((2, 2), dtype=int),
            B=sd.spec((2, 2), dtype=int),
            release=sd.Release(1),
        )


def test_version() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", sd.__version__)


def test_errors_are_what_numpy_users_expect() -> None:
    for error, builtin in (
        (sd.ShapeError, ValueError),
        (sd.InputError, ValueError),
        (sd.UnsupportedError, TypeError),
        (sd.MissingKeyError, LookupError),
        (sd.PrecisionError, ArithmeticError),
        (sd.ReleaseError, RuntimeError),
    ):
        assert issubclass(error, sd.SudareError)
        assert issubclass(error, builtin)
