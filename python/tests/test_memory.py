"""What does not fit into memory, or into any plan, is refused before it is taken."""

from __future__ import annotations

import io
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import sudare as sd
from sudare import _memory


def test_what_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    client = sd.BitsClient(parameters="insecure_test", threads=1)
    server = client.server()
    x = client.encrypt(np.zeros(1000, np.uint64))
    monkeypatch.setattr(_memory, "available", lambda: 1 << 27)
    with pytest.raises(sd.OutOfMemoryError, match="in parts") as refused:
        client.encrypt(np.zeros(100_000, np.uint64))
    assert isinstance(refused.value, MemoryError)
    assert isinstance(refused.value, sd.SudareError)
    ctx = sd.context(depth=1, tile=4, security="insecure")
    with pytest.raises(sd.OutOfMemoryError, match="in parts"):
        ctx.encrypt(np.zeros((2000, 2000)))
    monkeypatch.setattr(_memory, "SMALL", 1000)
    monkeypatch.setattr(_memory, "available", lambda: 1 << 20)
    with pytest.raises(sd.OutOfMemoryError):
        server.bind(x) + x
    with pytest.raises(sd.OutOfMemoryError):
        sd.load(io.BytesIO(b"{" + b" " * (2 << 20)))


def test_read_files_leave_room_in_a_container(tmp_path: Path) -> None:
    given = {
        "memory.max": "8000\n",
        "memory.current": "7000\n",
        "memory.stat": "anon 900\nfile 6100\ninactive_file 4000\nactive_file 2000\n",
    }
    for name, text in given.items():
        (tmp_path / name).write_text(text)
    assert _memory._container(tmp_path) == 7000
    (tmp_path / "memory.stat").unlink()
    assert _memory._container(tmp_path) == 1000
    (tmp_path / "memory.max").write_text("max\n")
    assert _memory._container(tmp_path) is None


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")
def test_ten_million_integers_under_six_gigabytes() -> None:
    """The process was aborted."""
    code = """
        import resource, numpy as np, sudare as sd
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
        client = sd.BitsClient(threads=1)
        try:
            client.encrypt(np.zeros(10**7, np.int64))
        except sd.OutOfMemoryError as error:
            print("refused", isinstance(error, MemoryError))
    """
    run = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "refused True", done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is in Linux's /proc")
def test_scores_of_a_linear_model_take_four_hundred_megabytes() -> None:
    """143 rows of 30 features, and a logistic function of degree 15: the keys, and all that is computed."""
    code = """
        import numpy as np, sudare as sd
        rng = np.random.default_rng(5)
        X, w = rng.uniform(-4, 4, (143, 30)), rng.normal(size=30) / 8
        scores = lambda X: sd.sigmoid(sd.bounded(X @ w + 0.2, 8), (-8, 8), degree=15)
        plan = sd.plan(scores, X=sd.spec(X.shape, max_abs=4), error=5e-2)
        client = plan.client(threads=2)
        client.server()
        found = client.decrypt(scores(client.encrypt(X)))
        assert np.abs(found - scores(X)).max() <= plan.error
        # Resource usage would begin with what the process before had.
        [peak] = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
        print(peak.split()[1])
    """
    run = [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= 400_000, done.stdout


def test_powers_without_end() -> None:
    for exponent in (10**18, 10**7):
        with pytest.raises(sd.UnsupportedError, match="powers go up to"):
            sd.plan(lambda A, e=exponent: A**e, A=sd.spec((2, 2)), error=1e-3)
    # An odd one squares what it has.
    ctx = sd.context(depth=1, tile=2, security="insecure")
    x = ctx.encrypt(np.full((2, 2), 0.5))
    assert np.abs(ctx.decrypt(x**3) - 0.125).max() < 1e-3
