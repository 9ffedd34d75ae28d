"""Mistakes in the compiled program besides those of tests/ptf/switchgnn_ptf/mistakes.py.

Each function changes p4c's JSON, parsed, in place.
"""

import json
from functools import partial

from tests.planted.planting import accept, constant, ingress, operations

# The outcome of a refusal that is ignored.
_ANOTHER_PROCESS = "0x15"


def nobody_has_the_maximum(compiled):
    """Let the first magnitude of a round be the largest."""
    for conditional in operations(ingress(compiled)["conditionals"], ">"):
        if "magnitude" in json.dumps(conditional["left"]) and "_largest" in json.dumps(
            conditional["right"]
        ):
            conditional["left"] = constant(0)


CHANGES = {
    "any_process": partial(accept, outcome=_ANOTHER_PROCESS),
    "nobody_has_the_maximum": nobody_has_the_maximum,
}
