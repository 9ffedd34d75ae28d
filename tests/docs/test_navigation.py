# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The site's list of pages has all that a reader looks for, and needs no MkDocs to be read."""

import ast
import re
from pathlib import Path

from switchgnn.commands.application import COMMANDS

ROOT = Path(__file__).parents[2]
MOST_LINES = 250
# The address of each page in the list of pages, which is the last part of the file.
PAGES = re.findall(
    r"^ +- (?:.*: )?(\S+\.md)$", (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2], re.M
)


def listed(folder):
    return {page.removeprefix(f"{folder}/") for page in PAGES if page.startswith(f"{folder}/")}


def public(module):
    """What a package or module says that it offers."""
    file = module / "__init__.py" if module.is_dir() else module
    for node in ast.parse(file.read_text()).body if file.exists() else ():
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    return []


# The command line has pages of its own.
PACKAGES = {
    ".".join(module.relative_to(ROOT).with_suffix("").parts): public(module)
    for folder in ("switchgnn", "switchgnn/lab")
    for module in (ROOT / folder).iterdir()
    if module.name not in ("__init__.py", "commands") and public(module)
}


def test_no_page_is_listed_twice():
    assert len(PAGES) == len(set(PAGES))


def test_every_document_is_in_the_navigation():
    elsewhere = {"changes.md", "contributing.md", "examples.md", "readme.md"}
    own = {page for page in PAGES if "/" not in page} - elsewhere
    assert own == {file.name for file in (ROOT / "docs").glob("*.md")}
    assert not list((ROOT / "docs").glob("*/**/*.md"))


def test_every_public_package_is_in_the_navigation():
    assert {"switchgnn.torch", "switchgnn.planner", "switchgnn.host"} < set(PACKAGES)
    assert listed("api") == {f"{name}.md" for name in PACKAGES}


def test_no_page_is_too_long_to_read():
    lengths = {
        page.name: len(page.read_text().splitlines()) for page in (ROOT / "docs").glob("*.md")
    }
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}


def test_every_command_is_in_the_navigation():
    assert listed("commands") == {"index.md", *(f"{each.name}.md" for each in COMMANDS)}
