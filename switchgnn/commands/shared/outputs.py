"""Outputs of commands: their options, and a check before the work."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from switchgnn.base.full_disk import WriteError
from switchgnn.base.options import OUTPUT, flag, option
from switchgnn.commands.shared.live import LiveOptions
from switchgnn.commands.shared.options import json_option


def check_outputs(
    folders: Mapping[str, Path | None] | None = None,
    files: Mapping[str, Path | None] | None = None,
    replaced: Mapping[str, Path | None] | None = None,
) -> None:
    """Check that outputs, by the options that name them, can be written; None: not given.

    A folder may be missing, but not its parent: a misspelled path would be
    created, and its contents never be found. `replaced` folders are put into place as a whole.
    """
    for paths in (folders, files, replaced):
        for name, path in (paths or {}).items():
            if path is not None:
                _check_output(name, path, is_file=paths is files, inside=paths is folders)


def _check_output(name: str, path: Path, *, is_file: bool, inside: bool) -> None:
    there = os.path.lexists(path)
    if is_file and path.is_dir():
        raise WriteError(f"{name}: cannot write {path}: it is a folder; name a file in it.")
    if there and not is_file and not path.is_dir():
        raise WriteError(f"{name}: cannot write {path}: it is no folder; name another.")
    parent = path if there and inside else path.absolute().parent
    if not parent.is_dir():
        raise WriteError(
            f"{name}: cannot write {path}: there is no folder {parent}; make it, or name another."
        )
    if not os.access(parent, os.W_OK | os.X_OK):
        raise WriteError(f"{name}: cannot write {path}: {parent} takes no new files.")


@dataclass(frozen=True)
class LogOptions:
    """Where logs go."""

    log_dir: Path | None = option(
        OUTPUT,
        "FOLDER",
        "Write the logs of switches, workers and this command to this folder.",
        shown="a temporary one, kept and named if something fails",
    )
    verbose: bool = flag(
        OUTPUT, "Print when processes start and end, and what they log.", "--verbose", "-v"
    )


@dataclass(frozen=True)
class OutputOptions:
    """What `run` and `train` write."""

    # With several --transport each has a folder inside that one.
    pcap: Path | None = option(
        OUTPUT,
        "FOLDER",
        "Write all packets to pcap files in this folder, one per link: see `switchgnn capture`.",
    )
    metrics: str | None = option(
        OUTPUT,
        "[ADDRESS:]PORT",
        "Let worker w serve metrics for Prometheus on PORT + w (on loopback by default).",
    )
    page: LiveOptions = field(default_factory=LiveOptions)
    as_json: bool = json_option()
    logs: LogOptions = field(default_factory=LogOptions)
