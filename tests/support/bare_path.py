"""Prints a PATH on which everything is but the optional programs; `make test-bare` takes it."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

# BMv2, p4c, Spin, ping and Mininet.
OPTIONAL = (
    *("simple_switch", "simple_switch_grpc", "p4c", "p4c-bm2-ss"),
    *("spin", "ping", "ping4", "ping6", "mn", "mnexec"),
)


def bare_path(path):
    """Return a folder with links to the programs of a PATH, the first of each name."""
    folder = Path(tempfile.gettempdir()) / f"switchgnn-bare-{os.getuid()}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    for searched in filter(None, path.split(os.pathsep)):
        for program in sorted(Path(searched).iterdir()) if Path(searched).is_dir() else []:
            link = folder / program.name
            if program.name not in OPTIONAL and not link.is_symlink():
                link.symlink_to(program.absolute())
    return folder


if __name__ == "__main__":
    sys.stdout.write(f"{bare_path(os.environ['PATH'])}\n")
