"""The logs that a run keeps when it has failed, in the folder for temporary files."""

import os
import shutil
import tempfile
from pathlib import Path


def take_kept_logs(folder=None):
    """Take kept logs away; return what each file holds, by its name."""
    found = {}
    parent = Path(folder or os.environ.get("TMPDIR") or tempfile.gettempdir())
    for kept in parent.glob("switchgnn-logs-*"):
        assert kept.stat().st_mode & 0o777 == 0o700
        found |= {path.name: path.read_text(errors="replace") for path in kept.iterdir()}
        shutil.rmtree(kept)
    return found
