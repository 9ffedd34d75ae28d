"""Hash and checksum algorithms over bytes."""

import zlib
from collections.abc import Callable
from functools import reduce
from itertools import chain
from operator import xor
from struct import iter_unpack

_CRC16_POLYNOMIAL = 0xA001  # 0x8005 with its bits in reverse order


def crc16(data: bytes) -> int:
    """Compute CRC-16/ARC, which is reflected and starts from zero."""
    value = 0
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (_CRC16_POLYNOMIAL if value & 1 else 0)
    return value


# Words have 16 bits; an odd last byte is the high byte of one.
def csum16(data: bytes) -> int:
    """Compute the Internet checksum."""
    value = int.from_bytes(data + bytes(len(data) & 1), "big")
    # 65536 is 1 modulo 65535, so the remainder is the folded sum of the words; a sum
    # that is a positive multiple of 65535 folds to 65535 and not to 0.
    folded = value % 0xFFFF or (0xFFFF if value else 0)
    return 0xFFFF - folded


def xor16(data: bytes) -> int:
    """Compute the exclusive or of the 16-bit words."""
    return reduce(xor, chain.from_iterable(iter_unpack(">H", data + bytes(len(data) & 1))), 0)


def identity(data: bytes) -> int:
    """Return the first eight bytes as an integer."""
    return int.from_bytes(data[:8], "big")


ALGORITHMS: dict[str, Callable[[bytes], int]] = {
    "crc16": crc16,
    "crc32": zlib.crc32,
    "csum16": csum16,
    "cksum16": csum16,
    "xor16": xor16,
    "identity": identity,
}
