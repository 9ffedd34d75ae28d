# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The program that a switch begins with: one of the product's, or one's own."""

from pathlib import Path

from finsy.proto import p4i, p4r
from google.protobuf import text_format

from switchgnn.base.files import read_regular, read_regular_text
from switchgnn.commands.errors import ProgramError
from switchgnn.controller.p4runtime.client import program_cookie
from switchgnn.controller.p4runtime.layout import parse_p4info
from switchgnn.p4src import Program, load_program, load_strawman

PRODUCT, STRAWMAN, NONE = "switchgnn", "strawman", "none"
_P4INFO_SUFFIX = ".p4info.txtpb"


def find_program(name: str, p4info: Path | None) -> p4r.ForwardingPipelineConfig | None:
    """Return the program that is meant.

    Args:
        name: `switchgnn` or `strawman`, the product's; `none`; or the file of p4c's JSON.
        p4info: the file of its P4Info (text); None: the one beside the JSON.

    Returns:
        What a controller would give to the switch; None for `none`.

    Raises:
        ProgramError: there is no such program.
        StaleProgramError: the product's is not compiled, or older than its sources.
    """
    if name in (PRODUCT, STRAWMAN, NONE):
        if p4info is not None:
            raise ProgramError(f"--p4info goes with a file of one's own, and not with {name}.")
        if name == NONE:
            return None
        return _of_the_product(load_program() if name == PRODUCT else load_strawman())
    return _of_files(Path(name), p4info)


def _of_the_product(program: Program) -> p4r.ForwardingPipelineConfig:
    return p4r.ForwardingPipelineConfig(
        p4info=parse_p4info(program.p4info),
        p4_device_config=program.json,
        # With it a controller sees that this is the program that it knows.
        cookie=p4r.ForwardingPipelineConfig.Cookie(cookie=program_cookie(program)),
    )


def _of_files(document: Path, p4info: Path | None) -> p4r.ForwardingPipelineConfig:
    described = p4info or document.with_name(f"{document.stem}{_P4INFO_SUFFIX}")
    try:
        config = read_regular(document)
        text = read_regular_text(described, "utf-8")
    except OSError as error:
        missing = error.filename or document
        raise ProgramError(
            f"The P4 program {document} cannot be read: {missing}: {error.strerror or error}. Give "
            f"the JSON that p4c makes for BMv2, with its P4Info in {described.name} beside it or "
            f"with --p4info; or {PRODUCT}, {STRAWMAN} or {NONE}."
        ) from None
    except UnicodeDecodeError:
        raise _no_p4info(described) from None
    try:
        return p4r.ForwardingPipelineConfig(
            p4info=text_format.Parse(text, p4i.P4Info()), p4_device_config=config
        )
    except text_format.ParseError:
        raise _no_p4info(described) from None


def _no_p4info(path: Path) -> ProgramError:
    return ProgramError(
        f"{path} is no P4Info in protobuf's text format: compile the program with p4c's option "
        "--p4runtime-files."
    )
