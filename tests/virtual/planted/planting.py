# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Mistakes in Python code of a process that runs: functions are given the code of changed ones."""

import importlib
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType, ModuleType

ROOT = Path(__file__).parents[3]
_CONSTANTS = (int, float, str)


@contextmanager
def text_replaced(file, old, new):
    """Let a module behave as if a text in its file, which stands there once, were another."""
    path = ROOT / file
    text = path.read_text()
    if text.count(old) != 1:
        raise ValueError(f"{file} has changed: {old!r} no longer finds its place.")
    name = file.removesuffix(".py").replace("/", ".")
    live = importlib.import_module(name if name.startswith("switchgnn.") else f"switchgnn.{name}")
    changed = ModuleType(live.__name__)
    changed.__file__ = live.__file__
    exec(compile(text.replace(old, new), str(path), "exec"), changed.__dict__)  # noqa: S102
    with _codes_from(live, changed), _constants_from(live, changed):
        yield


@contextmanager
def _codes_from(live, changed):
    others = dict(_functions(changed))
    here = {name: each for name, each in _functions(live) if name in others}
    before = {name: each.__code__ for name, each in here.items()}
    try:
        for name, each in here.items():
            each.__code__ = others[name].__code__
        yield
    finally:
        for name, each in here.items():
            each.__code__ = before[name]


@contextmanager
def _constants_from(live, changed):
    names = [
        name
        for name, value in vars(live).items()
        if isinstance(value, _CONSTANTS) and not name.startswith("__")
    ]
    before = {name: getattr(live, name) for name in names}
    try:
        for name in names:
            setattr(live, name, getattr(changed, name))
        yield
    finally:
        for name in names:
            setattr(live, name, before[name])


def _functions(module):
    """Yield the functions and methods of a module, with names that tell them apart."""
    for name, value in vars(module).items():
        if isinstance(value, FunctionType) and value.__module__ == module.__name__:
            yield name, value
        elif isinstance(value, type) and value.__module__ == module.__name__:
            for method, found in vars(value).items():
                for kind, each in _of_attribute(found):
                    if each.__code__.co_filename.endswith(".py"):
                        yield f"{name}.{method}.{kind}", each


def _of_attribute(found):
    if isinstance(found, FunctionType):
        yield "", found
    elif isinstance(found, staticmethod | classmethod):
        yield "", found.__func__
    elif isinstance(found, property):
        yield "get", found.fget
