# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the cases without importing them: importing needs a running PTF."""

import ast
from pathlib import Path

FOLDER = Path(__file__).parents[1]
ROOT = FOLDER.parents[1]
CASES = FOLDER / "cases"


def find_cases() -> list[str]:
    """Return every class in ``cases/`` that defines ``runTest``, as ``module.Class``."""
    return [
        f"{path.stem}.{node.name}"
        for path in sorted(CASES.glob("*.py"))
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and _is_case(node)
    ]


def _is_case(node: ast.ClassDef) -> bool:
    return any(isinstance(part, ast.FunctionDef) and part.name == "runTest" for part in node.body)
