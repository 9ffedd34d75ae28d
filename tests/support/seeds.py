"""How many seeds a test tries: a few in `make test`, many in `make test-all`."""

import zlib

import pytest


def seeds(few, many=20):
    """The numbers of the tries as parameters; those after the first `few` are for test-all only."""
    return [
        pytest.param(number, marks=pytest.mark.full) if number >= few else number
        for number in range(many)
    ]


def seed_of(*parameters):
    """A seed that depends on the parameters alone."""
    return zlib.crc32(repr(parameters).encode())
