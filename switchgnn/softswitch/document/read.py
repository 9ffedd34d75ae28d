# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Reads the JSON of a program, and holds it to its types."""

from collections.abc import Iterator
from typing import Any

from msgspec import MsgspecError, convert, json

from switchgnn.softswitch.document.nodes import check_node, is_name, is_number, malformed
from switchgnn.softswitch.document.types import (
    MOST_BITS,
    MOST_CELLS,
    Document,
    HeaderType,
    Name,
    Node,
)
from switchgnn.softswitch.errors import MalformedProgramError


def read_document(config: bytes) -> dict[str, Any]:
    """Return the JSON object of a program, held to its types.

    Raises:
        MalformedProgramError: it is not the JSON of a program, or something in it is of another
            type or too large; the place is named.
    """
    try:
        told = json.decode(config)
    except MsgspecError as error:
        raise MalformedProgramError(f"The program is not a JSON document: {error}.") from None
    except RecursionError:
        raise MalformedProgramError("The program's JSON is nested too deeply.") from None
    if not isinstance(told, dict) or not {"headers", "pipelines"} <= told.keys():
        raise MalformedProgramError(
            "The program has no 'headers' and 'pipelines': compile it for the v1model architecture."
        )
    try:
        document = convert(told, Document, strict=True)
    except MsgspecError as error:
        raise MalformedProgramError(f"The program's JSON is not of its types: {error}.") from error
    for kind in document.header_types:
        _check_fields(kind)
    cells = sum(array.size for array in document.register_arrays)
    cells += sum(array.size or 0 for array in document.counter_arrays)
    if cells > MOST_CELLS:
        raise MalformedProgramError(
            f"The program's arrays have {cells:,} cells; {MOST_CELLS:,} are the most."
        )
    for nodes, where in _nodes(document):
        for node in nodes:
            check_node(node, where)
    return told


def _check_fields(kind: HeaderType) -> None:
    for field in kind.fields:
        _check_field(field, kind.name)
    if sum(field[1] == "*" for field in kind.fields) > 1:
        raise MalformedProgramError(f"Header type '{kind.name}' has two fields of any length.")
    fixed = sum(field[1] for field in kind.fields if isinstance(field[1], int))
    if kind.max_length is not None and 8 * kind.max_length < fixed:
        raise MalformedProgramError(f"Header type '{kind.name}' is longer than its max_length.")


def _check_field(field: list[Name | int | bool], kind: str) -> None:
    """Check a name, a number of bits (``*``: any), and perhaps whether it is signed."""
    if (
        len(field) not in {2, 3}
        or not is_name(field[0])
        or not (field[1] == "*" or is_number(field[1], MOST_BITS))
        or field[1] == 0
        # p4c writes 0 for a bool.
        or (len(field) == 3 and not (isinstance(field[2], int) and field[2] in {0, 1}))
    ):
        raise malformed(field, f"header type '{kind}'")


def _nodes(document: Document) -> Iterator[tuple[list[Node], str]]:
    """Yield the expressions of everything that has some."""
    for parser in document.parsers:
        for state in parser.parse_states:
            where = f"parser state '{state.name}'"
            yield state.transition_key, where
            for operation in state.parser_ops:
                yield operation.parameters or [], where
    for action in document.actions:
        for primitive in action.primitives:
            yield primitive.parameters or [], f"action '{action.name}'"
    for pipeline in document.pipelines:
        for branch in pipeline.conditionals:
            yield [branch.expression], f"condition '{branch.name}'"
    for calculation in document.calculations:
        yield calculation.input, f"calculation '{calculation.name}'"
    for checksum in document.checksums:
        yield [] if checksum.if_cond is None else [checksum.if_cond], f"checksum '{checksum.name}'"
    for fields in document.field_lists:
        yield fields.elements, f"field list {fields.id}"
