"""`python -m tests.support.small_disk FOLDER LIMIT MODULE ...`: a program on a disk that fills up.

The folder is a disk of its own (tmpfs) with a limit such as `size=64k` or `nr_inodes=8`. What the
module leaves on the disk stands in the last line of standard error.
"""

import ctypes
import os
import runpy
import sys
from pathlib import Path

_CLONE_NEWNS = 0x20000
_MS_REC, _MS_PRIVATE = 0x4000, 1 << 18
LEFT = "left on the disk:"


def put_disk(folder, limit):
    """Mount a small disk on a folder, for this process and its children."""
    libc = ctypes.CDLL(None, use_errno=True)

    def call(done):
        if done != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    call(libc.unshare(_CLONE_NEWNS))
    call(libc.mount(b"none", b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None))
    call(libc.mount(b"none", os.fsencode(folder), b"tmpfs", ctypes.c_ulong(0), limit.encode()))


def main(folder, limit, module, *words):
    put_disk(folder, limit)
    # Relative paths are on the disk, too.
    os.chdir(os.getcwd())  # noqa: PTH109
    sys.argv = [module, *words]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        left = " ".join(sorted(path.name for path in Path(folder).iterdir()))
        sys.stderr.write(f"{LEFT} {left}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
