# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""`--engine` and `--ranks`: in how many processes vertices come to workers."""

from switchgnn.planner.errors import PlannerError
from switchgnn.planner.partition.ptscotch import ptscotch_name

_METIS, _PTSCOTCH = "metis", "ptscotch"
_RANKS = 2


def engine_partition(partition: str | None, engine: str | None, ranks: int | None) -> str | None:
    """Return the partition strategy that the options ask for.

    Args:
        partition: the value of --partition, or None.
        engine: the value of --engine, or None: metis is for every strategy of one process.
        ranks: the value of --ranks, or None.

    Returns:
        The name of the strategy; None: the preset chooses.

    Raises:
        PlannerError: an unknown engine, or options that contradict each other.
    """
    if engine not in (None, _METIS, _PTSCOTCH):
        raise PlannerError(f"no engine {engine!r}; known: {_METIS}, {_PTSCOTCH}")
    if engine != _PTSCOTCH:
        if ranks is not None:
            raise PlannerError(f"--ranks is for --engine {_PTSCOTCH}: METIS runs in one process")
        return partition
    if partition is not None:
        raise PlannerError(f"give --partition or --engine {_PTSCOTCH}, not both")
    return ptscotch_name(_RANKS if ranks is None else ranks)
