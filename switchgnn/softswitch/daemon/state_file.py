"""The file that keeps the controllers' settings as P4Runtime messages.

A header (magic, length and SHA-256 of the rest) is followed by length-prefixed messages: a
ForwardingPipelineConfig, then ReadResponses. The digest finds damage, not forgery: the content is
validated like a controller's requests.
"""

import hashlib
import logging
import os
import stat
import struct
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, BinaryIO

from finsy.proto import p4r

from switchgnn.base.files import open_regular, whole_file
from switchgnn.softswitch.errors import StateFileError
from switchgnn.softswitch.p4runtime.pipeline_config import (
    Device,
    InstalledPipeline,
    PipelineConfigs,
)
from switchgnn.softswitch.p4runtime.table_entries import (
    encode_default,
    encode_table,
    pack_responses,
    read_replication,
)

MAGIC = b"v1model-state 1\n"
HEAD = struct.Struct(">16sQ32s")  # magic, bytes after the header, their SHA-256
LENGTH = struct.Struct(">I")
MOST_MESSAGE_BYTES = 256 << 20  # as the server accepts from controllers
MOST_BYTES = 4 << 30  # ten times four million entries
_CHUNK = 1 << 20
_OWNER_ONLY = 0o600


@contextmanager
def explaining(what: str, fix: str) -> Iterator[None]:
    """Raise StateFileError for an OSError inside the block."""
    try:
        yield
    except OSError as error:
        raise StateFileError(f"{what}: {error.strerror or error}; {fix}.") from None


def write_state(path: Path, config: bytes, responses: Iterable[bytes]) -> None:
    """Write the file atomically, with mode 0600."""
    what = f"The state of the switch cannot be written to {path}"
    with (
        explaining(what, "make room there, or choose another file (--state)"),
        whole_file(path, mode=_OWNER_ONLY) as file,
    ):
        _fill(file, config, responses)


def _fill(file: IO[bytes], config: bytes, responses: Iterable[bytes]) -> None:
    digest, size = hashlib.sha256(), 0
    file.write(bytes(HEAD.size))
    for message in chain([config], responses):
        for piece in (LENGTH.pack(len(message)), message):
            digest.update(piece)
            size += file.write(piece)
        if len(message) > MOST_MESSAGE_BYTES or size > MOST_BYTES:
            raise OSError(f"it would exceed {MOST_BYTES >> 30} GiB")
    file.seek(0)
    file.write(HEAD.pack(MAGIC, size, digest.digest()))


@contextmanager
def open_state(path: Path) -> Iterator[Iterator[bytes] | None]:
    """Validate a file and yield an iterator over its messages; None without a file."""
    try:
        file = open_regular(path)
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        raise unusable(path, f"{error.strerror or error}") from None
    with file:
        yield _messages(file, _checked_size(file, path), path)


def unusable(path: Path, why: str) -> StateFileError:
    """Return the error for an invalid file."""
    return StateFileError(
        f"The state of the switch in {path} cannot be used: {why}. Remove it to start without, or "
        "choose another file (--state)."
    )


def _checked_size(file: BinaryIO, path: Path) -> int:
    found = os.fstat(file.fileno())
    if found.st_uid not in (os.geteuid(), 0):
        raise unusable(path, f"it belongs to another user ({found.st_uid})")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise unusable(path, "others may write to it")
    head = file.read(HEAD.size)
    if len(head) < HEAD.size or head[: len(MAGIC)] != MAGIC:
        raise unusable(path, "it is not a state file, or of another version")
    _, size, expected = HEAD.unpack(head)
    if size > MOST_BYTES:
        raise unusable(path, f"its length exceeds {MOST_BYTES >> 30} GiB")
    if found.st_size != HEAD.size + size:
        raise unusable(path, f"its length is {found.st_size:,} bytes, not {HEAD.size + size:,}")
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    if digest.digest() != expected:
        raise unusable(path, "it is damaged")
    file.seek(HEAD.size)
    return int(size)


def _messages(file: BinaryIO, size: int, path: Path) -> Iterator[bytes]:
    while size:
        length = int.from_bytes(file.read(LENGTH.size), "big")
        size -= LENGTH.size + length
        # Check the length before reading.
        if size < 0 or length > MOST_MESSAGE_BYTES:
            raise unusable(path, "a message in it is longer than the file")
        message = file.read(length)
        if len(message) != length:
            raise unusable(path, "it was truncated while being read")
        yield message


def kept_state(device: Device, pipeline: InstalledPipeline) -> Iterator[bytes]:
    """Copy the controllers' settings between two packets; yield serialized ReadResponses.

    Registers and counters, which packets change, are left out: after a restart they would be
    outdated.
    """
    tables = pipeline.state.tables
    schemas = pipeline.schema.tables.values()

    def copy() -> tuple[list[p4r.Entity], list[Iterable[p4r.Entity | bytes]]]:
        changed = [
            encode_default(each, tables[each.name].default)
            for each in schemas
            if tables[each.name].default[:2] != tables[each.name].initial_default[:2]
        ]
        changed += read_replication(pipeline, p4r.PacketReplicationEngineEntry())
        return changed, [
            encode_table(pipeline, each, tables[each.name].snapshot())
            for each in schemas
            if not each.constant
        ]

    changed, entries = device.call(copy)
    return chain.from_iterable(map(pack_responses, (changed, *entries)))


_LOG = logging.getLogger("softswitch.state")
_SHARE = 0.1  # of the time, for writing


@dataclass
class Keeper:
    """Keeps the file up to date, in a thread."""

    path: Path
    device: Device
    configs: PipelineConfigs
    changed: threading.Event
    interval: float  # seconds to a write, at least

    def __post_init__(self) -> None:
        what = f"The state of the switch cannot be kept in {self.path}"
        with explaining(what, "choose a file in an existing, writable folder (--state)"):
            TemporaryFile(dir=self.path.parent).close()
        self._stopping = threading.Event()
        self._failed = False
        self._thread = threading.Thread(target=self._run, name="softswitch-state", daemon=True)

    def start(self) -> None:
        """Start writing changes."""
        self._thread.start()

    def stop(self) -> None:
        """Write pending changes; the switch must no longer change."""
        left = self.changed.is_set()
        self._stopping.set()
        self.changed.set()
        self._thread.join()
        if left or self._failed:
            self._write()

    def _run(self) -> None:
        while True:
            self.changed.wait()
            # Collect the changes of one install.
            if self._stopping.wait(self.interval):
                return
            self.changed.clear()
            begin = time.monotonic()
            try:
                self._write()
            except StateFileError as error:
                if not self._failed:
                    _LOG.warning("%s", error)
                self._failed = True
                self.changed.set()
            else:
                self._failed = False
            took = time.monotonic() - begin
            if self._stopping.wait(took * (1 / _SHARE - 1)):
                return

    def _write(self) -> None:
        pipeline = self.configs.current
        if pipeline is None:
            write_state(self.path, b"", ())
            return
        responses = kept_state(self.device, pipeline)
        write_state(self.path, pipeline.config.SerializeToString(), responses)
