"""Every public function, method and property says what it does, and what it raises if it refuses anything.

What a function raises is read off the source: what its body raises, and what the functions of the package
that it calls raise, as far as they are called by a name that only one of them has.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import os
import re
from collections import defaultdict
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import sudare as sd
from sudare import _errors, genome, learn

ERRORS = {name for name, x in vars(_errors).items() if inspect.isclass(x) and issubclass(x, BaseException)}
ERRORS |= {"ZeroDivisionError", "RemoteError"}
PACKAGE = Path(sd.__file__).parent
FILES = sorted([*PACKAGE.glob("*.py"), *PACKAGE.glob("learn/*.py")])

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.Module) -> dict[str, Function]:
    """Functions and methods by their names, those of classes with the class before them."""
    found: dict[str, Function] = {}
    for node in tree.body:
        if isinstance(node, Function):
            found[node.name] = node
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{part.name}": part for part in node.body if isinstance(part, Function)}
    return found


def direct(function: Function) -> tuple[set[str], set[str]]:
    """Errors that a body raises, and names that it calls, of its own methods with a dot before."""
    raised, called = set(), set()
    for node in ast.walk(function):
        if isinstance(node, ast.Raise) and node.exc is not None:
            exc = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            if isinstance(exc, ast.Name):
                raised |= {exc.id} & ERRORS
                called.add(exc.id)
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name):
                called.add(node.func.id)
            elif isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) in ("self", "cls"):
                called.add(f".{node.func.attr}")
    return raised, called


def refusing() -> dict[str, set[str]]:
    """Functions of the package by file and name, with the errors that they or what they call raise."""
    bodies = {
        f"{path.stem}:{name}": direct(f)
        for path in FILES
        for name, f in functions(ast.parse(path.read_text())).items()
    }
    places = defaultdict(set)
    for key in bodies:
        name = key.split(":")[1]
        places[name[name.find(".") :] if "." in name else name].add(key)
    raised = {key: set(body[0]) for key, body in bodies.items()}
    while True:
        before = sum(map(len, raised.values()))
        for key, (_, called) in bodies.items():
            for name in called:
                if len(places[name]) == 1:
                    raised[key] |= raised[next(iter(places[name]))]
        if sum(map(len, raised.values())) == before:
            return raised


def public() -> dict[str, Any]:
    """Public functions, methods and properties by file and name."""
    found: dict[str, Any] = {}
    for module in (sd, genome, learn):
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isclass(thing) and not issubclass(thing, BaseException):
                for own in (c for c in thing.__mro__ if c.__module__.startswith("sudare.")):
                    for part, x in vars(own).items():
                        x = x.__func__ if isinstance(x, (classmethod, staticmethod)) else x
                        x = x.fget if isinstance(x, property) else x
                        if not part.startswith("_") and inspect.isfunction(x):
                            found[f"{own.__module__.split('.')[-1]}:{own.__name__}.{part}"] = x
            elif inspect.isfunction(thing):
                found[f"{thing.__module__.split('.')[-1]}:{thing.__name__}"] = thing
            elif not isinstance(thing, (str, ModuleType)):
                assert inspect.getdoc(thing), name
    return found


PUBLIC = public()


@pytest.mark.parametrize("key", PUBLIC)
def test_says_what_it_does(key: str) -> None:
    text = inspect.getdoc(PUBLIC[key])
    assert text, "no docstring"
    assert re.match(r"[A-Z`@].*[.:]", text, re.DOTALL), "no sentence"


@pytest.mark.parametrize("key", sorted(key for key, raised in refusing().items() if raised and key in PUBLIC))
def test_says_what_it_raises(key: str) -> None:
    text = inspect.getdoc(PUBLIC[key]) or ""
    assert re.search(r"\b[Rr]aises\b", text) or text.startswith("Refused"), sorted(refusing()[key])


MODULES = [
    f"sudare.{path.relative_to(PACKAGE).with_suffix('').as_posix().replace('/', '.')}" for path in FILES
]
EXAMPLES = [
    test
    for module in map(importlib.import_module, MODULES)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module)
    if test.examples
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda test: test.name)
def test_examples(example: doctest.DocTest, tmp_path: Path) -> None:
    """Every example of a docstring runs as printed, after `import numpy as np, sudare as sd`."""
    example.globs |= {"np": np, "sd": sd, "os": os, "folder": str(tmp_path)}
    assert doctest.DocTestRunner().run(example).failed == 0


def test_the_most_used_have_examples() -> None:
    assert len(EXAMPLES) >= 50, len(EXAMPLES)
