# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Frames from files: one, or several in the order of their times."""

import heapq
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

from switchgnn.base.files import open_regular
from switchgnn.capture.captured import Captured
from switchgnn.capture.errors import CaptureError, DamageError
from switchgnn.capture.pcap import is_pcap, read_pcap
from switchgnn.capture.pcapng import PCAPNG, read_pcapng
from switchgnn.capture.source import Source

STANDARD_INPUT = "-"
_ENDINGS = (".pcap", ".pcapng")


class CaptureFiles:
    """Some capture files that are read together, once. A context manager.

    Where one is damaged, what comes before and the other files are read nevertheless.

    Args:
        names: files; folders stand for the files ``.pcap`` and ``.pcapng`` in them, and ``-``
            for the standard input.

    Attributes:
        damages: what was wrong with those that were read.

    Raises:
        CaptureError: one cannot be opened, or is no capture.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.damages: list[DamageError] = []
        with ExitStack() as stack:
            frames = [_begin(name, stack) for name in _expand(names)]
            self._frames = [self._until_damage(each) for each in frames]
            self._open = stack.pop_all()

    def __enter__(self) -> "CaptureFiles":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def __iter__(self) -> Iterator[Captured]:
        if len(self._frames) == 1:
            return self._frames[0]
        return heapq.merge(*self._frames, key=lambda captured: captured.time)

    def _until_damage(self, frames: Iterator[Captured]) -> Iterator[Captured]:
        try:
            yield from frames
        except DamageError as error:
            self.damages.append(error)


def _expand(names: Sequence[str]) -> list[str]:
    files: list[str] = []
    for name in names:
        if name == STANDARD_INPUT or not Path(name).is_dir():
            files.append(name)
            continue
        try:
            found = sorted(each for each in Path(name).iterdir() if each.suffix in _ENDINGS)
        except OSError as error:
            raise CaptureError(f"Cannot read {name}: {error.strerror}.") from error
        if not found:
            raise CaptureError(f"There is no {' and no '.join(_ENDINGS)} file in {name}.")
        files.extend(map(str, found))
    if files.count(STANDARD_INPUT) > 1:
        raise CaptureError("The standard input (-) can be read once.")
    return files


def _begin(name: str, stack: ExitStack) -> Iterator[Captured]:
    if name == STANDARD_INPUT:
        stream: BinaryIO = sys.stdin.buffer
        source, link = Source(stream, "The standard input"), STANDARD_INPUT
    else:
        try:
            stream = stack.enter_context(open_regular(Path(name)))
        except OSError as error:
            raise CaptureError(f"Cannot read {name}: {error.strerror}.") from error
        source, link = Source(stream, name), Path(name).stem
    try:
        magic = source.take(4, "its first number")
    except DamageError as error:
        raise CaptureError(f"{source.name} is no capture: it has {source.at} bytes.") from error
    if is_pcap(magic):
        return read_pcap(source, magic, link)
    if magic == PCAPNG:
        return read_pcapng(source, link)
    raise CaptureError(
        f"{source.name} is neither a pcap nor a pcapng file; "
        "`tcpdump -w` and Wireshark write such files."
    )
