# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Converts integers to and from P4Runtime messages, and makes the errors of requests."""

from finsy.proto import p4r, rpc_code

from switchgnn.softswitch.errors import RequestError

# Messages have counts as int64; a count that a switch has taken further starts again at 0.
COUNT_MASK = 2**63 - 1


def encode(value: int) -> bytes:
    """Return the shortest big-endian byte string of a value; zero is one byte."""
    return value.to_bytes((value.bit_length() + 7) // 8 or 1, "big")


def decode(data: bytes, width: int, what: str) -> int:
    """Return the value of a big-endian byte string; leading zeros are allowed.

    Args:
        data: the byte string.
        width: the greatest number of bits of the value.
        what: the name of the value, with which the error's message begins.

    Returns:
        The value.

    Raises:
        RequestError: the string is empty or the value does not fit.
    """
    value = int.from_bytes(data, "big")
    if not data or value >> width:
        raise invalid(f"{what} needs a value of {width} bits, not {data.hex() or 'nothing'}.")
    return value


def decode_counts(data: p4r.CounterData) -> tuple[int, int]:
    """Return the packets and the bytes of a message.

    Raises:
        RequestError: one of them is negative.
    """
    if data.packet_count < 0 or data.byte_count < 0:
        raise invalid(
            f"Counter data needs counts of at least 0, not {data.packet_count} packets and "
            f"{data.byte_count} bytes."
        )
    return data.packet_count, data.byte_count


def invalid(message: str) -> RequestError:
    """Return an INVALID_ARGUMENT error."""
    return RequestError(rpc_code.INVALID_ARGUMENT, message)


def not_found(message: str) -> RequestError:
    """Return a NOT_FOUND error."""
    return RequestError(rpc_code.NOT_FOUND, message)


def exists(message: str) -> RequestError:
    """Return an ALREADY_EXISTS error."""
    return RequestError(rpc_code.ALREADY_EXISTS, message)


def denied(message: str) -> RequestError:
    """Return a PERMISSION_DENIED error."""
    return RequestError(rpc_code.PERMISSION_DENIED, message)


def unimplemented(message: str) -> RequestError:
    """Return an UNIMPLEMENTED error."""
    return RequestError(rpc_code.UNIMPLEMENTED, message)


def precondition(message: str) -> RequestError:
    """Return a FAILED_PRECONDITION error."""
    return RequestError(rpc_code.FAILED_PRECONDITION, message)
