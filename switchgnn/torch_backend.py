"""The PyTorch backend ``switchgnn``, for ``torch.distributed.init_process_group("switchgnn")``.

PyTorch calls :func:`register` at the end of its own import (the entry point ``torch.backends``), so
this module imports nothing else until a group is made. Where SwitchGNN is not installed as a
package, or TORCH_DEVICE_BACKEND_AUTOLOAD is 0, ``import switchgnn.torch`` registers the backend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from switchgnn.training.exchange.process_group import OpenReducer, SwitchProcessGroup

NAME = "switchgnn"
# Gloo, which does the rest, takes tensors of both.
DEVICES = ("cpu", "cuda")


def register(open_reducer: OpenReducer | None = None) -> None:
    """Register the backend with PyTorch, unless that is done or PyTorch lacks torch.distributed.

    Args:
        open_reducer: replaces the connection to the switch, and the backend registered so far.
    """
    # At this point of its import, PyTorch has imported torch.distributed itself.
    import torch.distributed as dist  # noqa: PLC0415

    if not dist.is_available():
        return
    if open_reducer is None and NAME in dist.Backend.backend_list:
        return

    def make(options: Any, _own: object) -> SwitchProcessGroup:  # noqa: ANN401
        return _make(options, open_reducer)

    dist.Backend.register_backend(NAME, make, extended_api=True, devices=list(DEVICES))


def _make(options: Any, open_reducer: OpenReducer | None) -> SwitchProcessGroup:  # noqa: ANN401
    """Return the group of all workers, or one of some workers, which has Gloo alone.

    Args:
        options: torch.distributed's _DistributedBackendOptions; the group of all workers names no
            ranks.
        open_reducer: as of :func:`register`.

    Raises:
        RuntimeError: this process has no task of the launcher.
        HostError: the switch or another worker does not answer.
    """
    # PyTorch is complete when it makes a group.
    from switchgnn.host.reduce.connection import open_from_environment  # noqa: PLC0415
    from switchgnn.training.exchange.process_group import SwitchProcessGroup  # noqa: PLC0415

    whole = not options.global_ranks_in_group
    reducer = None
    if whole:
        reducer = (open_reducer or open_from_environment)(options.group_rank, options.group_size)
    return SwitchProcessGroup(options, reducer)
