"""The P4 program, and access to its committed compilation."""

from switchgnn.p4src.program import (
    Program,
    load_program,
    load_strawman,
    load_tofino,
    program_named,
    program_of,
)

__all__ = ["Program", "load_program", "load_strawman", "load_tofino", "program_named", "program_of"]
