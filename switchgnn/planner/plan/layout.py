# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The arrays of the files of a plan: name and type, little-endian."""

from collections.abc import Mapping

SWITCH_ARRAYS: Mapping[str, str] = {
    "source_vertex": "<u4",
    "source_worker": "<u2",
    "entry_block": "<u2",
    "entry_source": "<u4",
    "entry_hop": "<u2",
    "entry_last": "|b1",
    "entry_count": "<u2",
    "entry_slot": "<u4",
    "entry_expected": "<u2",
    "result_block": "<u2",
    "result_bank": "|u1",
    "result_slot": "<u4",
    "result_vertex": "<u4",
    "result_worker": "<u2",
    "result_expected": "<u2",
}

WORKER_ARRAYS: Mapping[str, str] = {
    "vertices": "<i8",
    "send_indptr": "<i8",
    "send_source": "<u4",
    "send_destination": "<u4",
    "send_row_indptr": "<i8",
    "send_row": "<i8",
    "receive_indptr": "<i8",
    "receive_vertex": "<u4",
    "receive_row": "<i8",
    "receive_count": "<u2",
    "neighbour_indptr": "<i8",
    "neighbour_vertex": "<u4",
    "neighbour_worker": "<u2",
}

# Of a worker, in a plan that leaves destinations to the hosts; in no other.
LEFT_ARRAYS: Mapping[str, str] = {"left_forward": "<i8", "left_backward": "<i8"}

# These have a number for each bank; all others are rows of numbers.
TABLES = ("entry_slot", "entry_expected")

MANIFEST_FILE = "plan.json"
SWITCH_FILE = "switch.npz"
ASSIGNMENT_FILE = "assignment.npy"


def worker_file(worker: int) -> str:
    """Return the file name of a worker's part."""
    return f"worker-{worker:03d}.npz"
