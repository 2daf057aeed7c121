"""The kernel family that SUDARE_KERNEL names."""

import os
import subprocess
import sys

PRODUCT = """
import numpy as np, sudare as sd
plan = sd.plan(lambda A, B: A @ B, A=sd.spec((2, 2)), B=sd.spec((2, 2)), error=1e-3)
client = sd.Client(plan)
server = client.server()
A = np.eye(2)
C = client.decrypt(client.encrypt(A, "A") @ client.encrypt(A, "B"))
assert np.abs(C - A).max() < 1e-3
"""


def run(kernel: str, program: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "SUDARE_KERNEL": kernel}
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)


def test_the_portable_family_gives_products() -> None:
    done = run("portable", PRODUCT)
    assert done.returncode == 0, done.stderr


def test_another_word_is_refused() -> None:
    done = run("avx", "import sudare")
    assert done.returncode == 1
    assert 'ValueError: SUDARE_KERNEL: "avx" is not a kernel family; they are portable' in done.stderr
