# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Files that others see as a whole, or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_FOR_ALL_TO_READ = 0o644


@dataclass(frozen=True)
class UnfinishedFile:
    """A file that may take the place of another.

    Attributes:
        file: to write to.
        here: where it is.
        there: the place that is meant for it.
    """

    file: IO[bytes]
    here: Path
    there: Path

    def settle(self) -> None:
        """Wait until the disk has all of it; some find out only then that they are full.

        Raises:
            OSError: the disk does not take it.
        """
        self.file.flush()
        os.fsync(self.file.fileno())

    def put(self) -> None:
        """Let what has settled take its place, in one step.

        Raises:
            OSError: it cannot.
        """
        self.here.replace(self.there)


@contextmanager
def unfinished_file(path: Path) -> Iterator[UnfinishedFile]:
    """Yield a file beside a path, which is gone behind the block unless it was put there.

    A process that is killed leaves it, as ``.NAME.XXXX.part``; it can be deleted.

    Raises:
        OSError: it cannot be made.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    here, file = Path(name), os.fdopen(handle, "wb")
    try:
        # `mkstemp` makes files for their owner alone.
        here.chmod(_FOR_ALL_TO_READ)
        yield UnfinishedFile(file, here, path)
    finally:
        # What was put there is on the disk, and the rest is not wanted.
        with suppress(OSError):
            file.close()
        here.unlink(missing_ok=True)


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file to write, which takes the place of a path if the block succeeds.

    Raises:
        OSError: it cannot be made, or not be written; what was at the path stays.
    """
    with unfinished_file(path) as unfinished:
        yield unfinished.file
        unfinished.settle()
        unfinished.put()
