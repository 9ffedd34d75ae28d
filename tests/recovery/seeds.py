# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""How many seeds the tests here try: few in `make test`, many with SWITCHGNN_FULL=1."""

import os
import zlib

FULL = os.environ.get("SWITCHGNN_FULL") == "1"


def seeds(few, many=20):
    """The numbers of the tries: `few`, or `many` when all is asked for."""
    return range(many if FULL else few)


def seed_of(*parameters):
    """A seed that depends on the parameters alone, on every machine and in every run."""
    return zlib.crc32(repr(parameters).encode())
