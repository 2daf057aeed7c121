"""`scripts/prerequisites` where something is missing: one message, and one command for each system."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "prerequisites"

# What a tool of a complete machine does, as a script. A compiler writes what it is asked to link.
RUST = "echo rustc 1.95.0 '(59807616e 2026-04-14)'"
CARGO = 'case "$1" in fmt | clippy | --version) echo cargo 1.95.0 ;; *) exit 1 ;; esac'
COMPILER = 'while [ "$1" != -o ]; do shift; done; : >"$2"'
PYTHON = 'case "$2" in *version_info*) echo 3.13.0 ;; esac'
COMPLETE = {
    "rustc": RUST,
    "cargo": CARGO,
    "cc": COMPILER,
    "c++": COMPILER,
    "python3": PYTHON,
    "rustup": "",
    "curl": "",
}


def commands(said: list[str]) -> set[str]:
    """What follows the names of the systems."""
    return {line.split(":", 1)[1].strip() for line in said[said.index("what installs all of it:") + 1 :]}


Check = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Runs the script where the complete machine's tools are, with some changed, or taken away by None."""

    def run(purpose: str, python: str = "python3", /, **changed: str | None) -> tuple[int, list[str]]:
        tools = {**COMPLETE, **{name.replace("cxx", "c++"): body for name, body in changed.items()}}
        for name, body in tools.items():
            if body is not None:
                (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
                (tmp_path / name).chmod(0o755)
        for name in ("sh", "mktemp", "rm", "sed"):
            (tmp_path / name).symlink_to(shutil.which(name) or name)
        (tmp_path / "id").write_text("#!/bin/sh\necho 1000\n")
        (tmp_path / "id").chmod(0o755)
        done = subprocess.run(
            [shutil.which("sh") or "sh", SCRIPT, purpose, python],
            env={"PATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout == ""
        return done.returncode, done.stderr.splitlines()

    return run


def test_a_complete_machine_says_nothing(check: Check) -> None:
    assert check("demo", cxx=None) == (0, [])


def test_a_complete_machine_for_the_tests_says_nothing(check: Check) -> None:
    assert check("test") == (0, [])


def test_all_that_is_missing_is_one_message(check: Check) -> None:
    nothing = dict.fromkeys(("rustc", "cargo", "cc", "cxx", "python3", "rustup", "curl"))
    rust = "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y"
    assert check("test", **nothing) == (
        1,
        [
            "missing for `make test`:",
            "  - rustc 1.91.1 or newer",
            "  - cargo 1.91.1 or newer",
            "  - a C compiler that links (cc)",
            "  - a C++ compiler that links (c++)",
            "  - Python 3.10 or newer (python3)",
            "what installs all of it:",
            "  Debian, Ubuntu: sudo apt-get update && sudo apt-get install -y "
            f"curl gcc libc6-dev g++ python3 python3-venv && {rust}",
            f"  Fedora:         sudo dnf install -y curl gcc glibc-devel gcc-c++ python3 && {rust}",
            f"  macOS:          xcode-select --install && brew install python && {rust}",
            "  Then open a new shell, so that it finds Rust.",
        ],
    )


@pytest.mark.parametrize(
    ("purpose", "found", "wanted"),
    [("demo", "1.70.0", "1.89"), ("demo", "1.88.0-nightly", "1.89"), ("test", "1.91.0", "1.91.1")],
)
def test_an_old_rust_is_brought_up_to_date(check: Check, purpose: str, found: str, wanted: str) -> None:
    old = f"echo rustc {found}"
    status, said = check(purpose, rustc=old, cargo=old)
    assert status == 1
    assert said[1:3] == [f"  - {tool} {wanted} or newer (this one is {found})" for tool in ("rustc", "cargo")]
    assert commands(said) == {"rustup update stable && rustup default stable"}


@pytest.mark.parametrize(
    ("purpose", "found"), [("demo", "1.89.0"), ("test", "1.91.1"), ("test", "1.100.0-beta.2")]
)
def test_the_oldest_rust_is_enough(check: Check, purpose: str, found: str) -> None:
    assert check(purpose, rustc=f"echo rustc {found}") == (0, [])


def test_a_rustup_without_a_toolchain(check: Check) -> None:
    without = "echo 'error: no default toolchain is configured' >&2; exit 1"
    status, said = check("demo", rustc=without, cargo=without)
    assert (status, said[1]) == (1, "  - rustc 1.89 or newer")
    assert said[-1].endswith("rustup update stable && rustup default stable")


def test_the_tests_want_rustfmt_and_clippy(check: Check) -> None:
    minimal = 'case "$1" in --version) echo cargo 1.95.0 ;; *) exit 1 ;; esac'
    status, said = check("test", cargo=minimal)
    assert (status, said[1:3]) == (1, ["  - cargo fmt", "  - cargo clippy"])
    assert commands(said) == {"rustup component add rustfmt clippy"}


def test_the_demo_wants_neither(check: Check) -> None:
    assert check("demo", cargo='case "$1" in --version) echo cargo 1.95.0 ;; *) exit 1 ;; esac') == (0, [])


@pytest.mark.parametrize("compiler", [None, "exit 1"], ids=["none", "without libraries"])
def test_a_compiler_that_does_not_link_is_missing(check: Check, compiler: str | None) -> None:
    assert check("demo", cc=compiler) == (
        1,
        [
            "missing for `make demo`:",
            "  - a C compiler that links (cc)",
            "what installs all of it:",
            "  Debian, Ubuntu: sudo apt-get update && sudo apt-get install -y gcc libc6-dev",
            "  Fedora:         sudo dnf install -y gcc glibc-devel",
            "  macOS:          xcode-select --install",
        ],
    )


def test_only_the_tests_want_a_compiler_of_cpp(check: Check) -> None:
    status, said = check("test", cxx=None)
    assert (status, said[1]) == (1, "  - a C++ compiler that links (c++)")
    assert said[3].endswith("apt-get install -y g++")


def test_an_old_python(check: Check) -> None:
    status, said = check("demo", python3="echo 3.9.18")
    assert (status, said[1]) == (1, "  - Python 3.10 or newer (python3 is 3.9.18)")
    assert said[3].endswith("apt-get install -y python3 python3-venv")
    assert said[-1].endswith("make PYTHON=/path/to/python3")


@pytest.mark.parametrize(
    ("python", "package"), [("python3", "python3-venv"), ("python3.13", "python3.13-venv")]
)
def test_a_python_without_venv(check: Check, python: str, package: str) -> None:
    without = 'case "$2" in *version_info*) echo 3.13.0 ;; *) exit 1 ;; esac'
    status, said = check("demo", python, **{python: without})
    assert (status, said[1]) == (1, f"  - the modules venv and ensurepip ({python})")
    assert said[3].endswith(f"apt-get install -y {package}")


def test_what_it_is_asked_for(check: Check) -> None:
    assert check("bench") == (2, ["usage: scripts/prerequisites [demo|test] [PYTHON]"])
