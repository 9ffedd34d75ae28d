"""Deadlines of tests follow the speed of the machine."""

import ast
import re
import textwrap
from pathlib import Path

WAITS = {"wait", "join", "settimeout", "acquire", "create_connection"}
DEADLINES = {"timeout", "deadline"}
# Times of a model, not of this machine, and those that `pace_here` multiplies.
MODELS = {"simulated", "NetworkOptions", "Pace"}
SIMULATION = Path("tests/simulation")
# What is over sooner is meant to expire.
SHORTEST = 1.0


def of_fixed_length(text):
    """Lines with a deadline of some seconds that does not know of the machine."""
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(r"monotonic\(\) \+ (?!seconds_here)", line):
            yield number
    for node in ast.walk(ast.parse(text)):
        # `join` of a string is none.
        if not isinstance(node, ast.Call) or isinstance(
            getattr(node.func, "value", None), ast.Constant
        ):
            continue
        name = getattr(node.func, "attr", None) or getattr(node.func, "id", "")
        given = [
            each.value for each in node.keywords if each.arg in DEADLINES and name not in MODELS
        ]
        given += node.args[-1:] if name in WAITS else []
        yield from (node.lineno for value in given if is_fixed(value))


def is_fixed(value):
    if isinstance(value, ast.Name):
        return value.id.isupper()
    seconds = getattr(value, "value", None)
    return isinstance(seconds, (int, float)) and seconds is not True and seconds >= SHORTEST


def test_no_deadline_is_of_fixed_length():
    assert [
        f"{path}:{line}"
        for path in sorted(Path("tests").rglob("*.py"))
        # Virtual time does not depend on the machine.
        if path.name != Path(__file__).name and SIMULATION not in path.parents
        for line in of_fixed_length(path.read_text())
    ] == [], "take seconds_here() of tests/support/speed.py"


def test_a_deadline_of_fixed_length_is_found():
    text = """\
        process.wait(30)
        subprocess.run(command, timeout=SECONDS)
        end = time.monotonic() + 20
        thread.join(seconds_here(30))
        child.wait(0.2)
        ", ".join(words.split())
        socket.create_connection(address, 5)
    """
    assert sorted(of_fixed_length(textwrap.dedent(text))) == [1, 2, 3, 7]
