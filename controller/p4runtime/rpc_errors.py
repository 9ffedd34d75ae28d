"""gRPC errors as sentences with the switch, the entry, the reason and the remedy."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc
from finsy.proto import p4r, rpc_code, rpc_status

from switchgnn.controller.base import errors
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.controller.p4runtime.rows import describe_entity

# What a call raises is a call, too, which the types of gRPC do not say.
RpcError = Any
_DETAILS_KEY = "grpc-status-details-bin"

_SOMEBODY = "Something else writes to this switch: stop it and install again."
_MEANINGS: dict[int, tuple[str, str]] = {
    rpc_code.ALREADY_EXISTS: ("it is there already", _SOMEBODY),
    rpc_code.NOT_FOUND: ("it is not there", _SOMEBODY),
    rpc_code.RESOURCE_EXHAUSTED: (
        "there is no room for it",
        "Make a plan with fewer entries, or compile the program with larger tables.",
    ),
    rpc_code.INVALID_ARGUMENT: (
        "the switch does not take it for valid",
        "Check that the switch runs the program of this installation.",
    ),
    rpc_code.UNIMPLEMENTED: (
        "the switch does not support it",
        "Use simple_switch_grpc 1.15 or the embedded switch.",
    ),
}
_OTHER_MEANING = ("it was refused", "The log of the switch may say more.")


@contextmanager
def explained(address: str, doing: str) -> Iterator[None]:
    """Turn gRPC errors inside the block into ControllerErrors; ``doing`` as "being read"."""
    try:
        yield
    except grpc.RpcError as error:
        raise explain(address, doing, error) from error


def explain(address: str, doing: str, error: RpcError) -> errors.ControllerError:
    """Explain a gRPC error that is not about single updates."""
    code, words = error.code(), error.details() or "no reason given"
    if code is grpc.StatusCode.UNAVAILABLE:
        return errors.SwitchUnreachableError(
            f"Switch {address} went away while {doing} ({words}): see whether it still runs, "
            "then try again."
        )
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return errors.SwitchUnreachableError(
            f"Switch {address} did not answer in time while {doing}: it hangs or is "
            "overloaded; restart it and try again."
        )
    if code is grpc.StatusCode.PERMISSION_DENIED:
        return not_primary(address, words)
    if code is grpc.StatusCode.FAILED_PRECONDITION:
        return errors.PipelineMissingError(
            f"Switch {address} runs no P4 program ({words}): install a plan first."
        )
    if code is grpc.StatusCode.NOT_FOUND and "device" in words.lower():
        return errors.SwitchUnreachableError(
            f"Switch {address} has no device of that id ({words}): give the id that it was "
            "started with (--device-id)."
        )
    return errors.ControllerError(f"Switch {address} failed {doing}: {code.name}: {words}.")


def not_primary(address: str, words: str) -> errors.NotPrimaryError:
    """Return the error for a controller that may not write."""
    return errors.NotPrimaryError(
        f"Switch {address} is under the control of somebody else ({words}): wait until it is done, "
        "as a `switchgnn run` or `train`, or stop it, as a running `watch`, and try again."
    )


def no_primary(address: str, highest: int) -> errors.NoPrimaryError:
    """Return the error for a controller whose election id is too low though there is no other."""
    return errors.NoPrimaryError(
        f"Switch {address} obeys no controller with an election id below {highest}, because there "
        f"was one with that: give --election-id {highest} or a higher one."
    )


def explain_write(
    address: str, request: p4r.WriteRequest, error: RpcError, layout: Layout | None
) -> errors.ControllerError:
    """Explain why a write request failed, wholly or in part."""
    failures = _failures(request, error, layout)
    if not failures:
        first = describe_entity(request.updates[0].entity, layout)
        return explain(address, f"writing {first}", error)
    first_failure = failures[0]
    why, what_to_do = _MEANINGS.get(first_failure.code, _OTHER_MEANING)
    # A switch may send numbers that gRPC does not know.
    names: dict[int, str] = {number: name for name, number in rpc_code.Code.items()}
    code = names.get(first_failure.code, first_failure.code)
    return errors.WriteRefusedError(
        f"Switch {address} refused {len(failures)} of {len(request.updates)} updates, the first "
        f"of them {first_failure.entry}: {why} ({code}: {first_failure.reason}). {what_to_do}",
        failures,
    )


def _failures(
    request: p4r.WriteRequest, error: RpcError, layout: Layout | None
) -> tuple[errors.UpdateFailure, ...]:
    """Return the updates that failed; P4Runtime sends one status per update, OK or not."""
    found = dict(error.trailing_metadata() or ()).get(_DETAILS_KEY)
    if found is None:
        return ()
    details = (
        p4r.Error.FromString(detail.value) for detail in rpc_status.Status.FromString(found).details
    )
    return tuple(
        errors.UpdateFailure(
            index=index,
            entry=describe_entity(request.updates[index].entity, layout),
            code=detail.canonical_code,
            reason=detail.message or "no reason given",
        )
        for index, detail in enumerate(details)
        if detail.canonical_code != rpc_code.OK and index < len(request.updates)
    )
