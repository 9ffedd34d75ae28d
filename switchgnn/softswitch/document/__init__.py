# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The types of a program's JSON. Nothing reads the JSON before it has been held to them.

A program may come from anybody who may set the switch's pipeline. What the code generators find in
it is therefore of the type that they expect, and no larger than the limits here: a number is a
number, a name is a short string, an expression is not nested deeply.

The format is that of BMv2:
https://github.com/p4lang/behavioral-model/blob/main/docs/JSON_format.md
"""

from switchgnn.softswitch.document.read import read_document

__all__ = ["read_document"]
