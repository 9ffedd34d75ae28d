"""Mistakes in files, in modules of this process, and in the compiled program."""

import hashlib
import importlib
import json
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import FunctionType, ModuleType

ROOT = Path(__file__).parents[2]
_CONSTANTS = (int, float, str)


def changed_text(file, old, new):
    """Return the text of a file with another text in place of one that occurs once."""
    text = (ROOT / file).read_text()
    if text.count(old) != 1:
        raise ValueError(f"{file} has changed: {old!r} no longer occurs once.")
    return text.replace(old, new)


@contextmanager
def text_replaced(file, old, new):
    """Give the functions and constants of a live module those of its changed text."""
    text = changed_text(file, old, new)
    name = file.removesuffix(".py").replace("/", ".")
    live = importlib.import_module(name if name.startswith("switchgnn.") else f"switchgnn.{name}")
    changed = ModuleType(live.__name__)
    changed.__file__ = live.__file__
    exec(compile(text, str(ROOT / file), "exec"), changed.__dict__)  # noqa: S102
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
    elif isinstance(found, cached_property):
        yield "get", found.func


def changed_program(program, name, change):
    """Return a program whose parsed JSON is changed in place, under a digest of its own."""
    compiled = json.loads(program.json)
    before = json.dumps(compiled)
    change(compiled)
    after = json.dumps(compiled)
    if after == before:
        raise ValueError(f"The compiled program has changed: {name} no longer applies.")
    return replace(program, json=after.encode(), digest=hashlib.sha256(name.encode()).hexdigest())


def accept(compiled, outcome):
    """Let packets with this outcome stay PENDING."""
    for action in compiled["actions"]:
        for step in action["primitives"]:
            to, value = (step["parameters"] * 2)[:2] if step["op"] == "assign" else ({}, {})
            if "_outcome" in str(to.get("value")) and value.get("value") == outcome:
                value["value"] = "0xff"


def actions(compiled, name):
    """Return all copies of an action, by the end of its name."""
    found = [action for action in compiled["actions"] if action["name"].endswith(name)]
    assert found, name
    return found


def ingress(compiled):
    return next(part for part in compiled["pipelines"] if part["name"] == "ingress")


def egress(compiled):
    return next(part for part in compiled["pipelines"] if part["name"] == "egress")


def nodes(node):
    """Yield all objects in a part of the document."""
    if isinstance(node, dict):
        yield node
    for child in node.values() if isinstance(node, dict) else node:
        if isinstance(child, dict | list):
            yield from nodes(child)


def constant(number):
    return {"type": "hexstr", "value": hex(number)}


def constants(node):
    return [found for found in nodes(node) if found.get("type") == "hexstr"]


def operations(node, operator):
    return [found for found in nodes(node) if found.get("op") == operator and "left" in found]
