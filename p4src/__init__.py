"""The P4 program, and access to its committed compilation."""

from switchgnn.p4src.program import (
    Program,
    StaleProgramError,
    load_program,
    load_strawman,
    load_tofino,
    program_named,
    program_of,
)

__all__ = [
    "Program",
    "StaleProgramError",
    "load_program",
    "load_strawman",
    "load_tofino",
    "program_named",
    "program_of",
]
