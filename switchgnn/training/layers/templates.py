# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch Geometric writes code for each kind of layer into a file; none of them stays.

It makes the file when a layer of a kind is first made in a process, imports it, and forgets it:
`module_from_template` in
https://github.com/pyg-team/pytorch_geometric/blob/master/torch_geometric/template.py
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from switchgnn.base.files import private_folder


@contextmanager
def templates_removed() -> Iterator[None]:
    """Take away at the end whatever temporary files this process has made meanwhile.

    No other thread may make any: the folder for them is the process's.
    """
    before = tempfile.tempdir
    with private_folder("switchgnn-") as folder:
        tempfile.tempdir = str(folder)
        try:
            yield
        finally:
            tempfile.tempdir = before
