# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The file that keeps what controllers have set: P4Runtime's own messages, and a digest.

A head of fixed length (what it is, how long the rest is, the digest of the rest) is followed by
messages with their lengths: a ForwardingPipelineConfig, then ReadResponses. The digest finds
damage, and proves nothing about who wrote the file: what is in it is held to all that is asked of
a controller.
"""

import hashlib
import io
import logging
import os
import stat
import struct
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from finsy.proto import p4r

from switchgnn.base.files import open_regular
from switchgnn.softswitch.errors import StateFileError
from switchgnn.softswitch.p4runtime.device import Device, InstalledPipeline
from switchgnn.softswitch.p4runtime.pipeline_config import PipelineConfigs
from switchgnn.softswitch.p4runtime.schema import TableSchema
from switchgnn.softswitch.p4runtime.table_entries import encode_default, encode_entries
from switchgnn.softswitch.tables import Entry

MAGIC = b"v1model-state 1\n"
HEAD = struct.Struct(">16sQ32s")  # what it is, bytes behind the head, their SHA-256
LENGTH = struct.Struct(">I")
# As the server takes them from controllers.
MOST_MESSAGE_BYTES = 256 << 20
# A table with four million entries takes a tenth of it.
MOST_BYTES = 4 << 30
_CHUNK = 1 << 20
_OWNER_ONLY = 0o600


def write_state(path: Path, config: bytes, responses: Iterable[bytes]) -> None:
    """Put a file in the place of another in one step, for its owner alone.

    Args:
        path: where.
        config: the serialized ForwardingPipelineConfig; empty where no program is installed.
        responses: serialized ReadResponses with all that was set.

    Raises:
        StateFileError: it cannot be written, or is too long; what was there stays.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        with _new_file(part) as file:
            _fill(file, config, responses)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        _settle(path.parent)
    except OSError as error:
        raise StateFileError(
            f"The state of the switch cannot be written to {path}: {error.strerror or error}; make "
            "room there, or choose another place (--state)."
        ) from None


def check_place(path: Path) -> None:
    """See to it, before the switch serves, that a file can be written there.

    Raises:
        StateFileError: it cannot.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        _new_file(part).close()
        part.unlink()
    except OSError as error:
        raise StateFileError(
            f"The state of the switch cannot be kept in {path}: {error.strerror or error}; choose "
            "a folder that exists and that the switch may write to (--state)."
        ) from None


def _new_file(path: Path) -> BinaryIO:
    # The name is fixed, so that a switch that is killed leaves one such file at most; a link that
    # somebody has put there is not followed.
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, _OWNER_ONLY), "wb")


def _fill(file: BinaryIO, config: bytes, responses: Iterable[bytes]) -> None:
    digest, size = hashlib.sha256(), 0
    file.write(bytes(HEAD.size))
    for message in _with_config(config, responses):
        for piece in (LENGTH.pack(len(message)), message):
            digest.update(piece)
            size += file.write(piece)
        if len(message) > MOST_MESSAGE_BYTES or size > MOST_BYTES:
            raise OSError(f"it would be longer than the {MOST_BYTES >> 30} GiB that are read again")
    file.seek(0)
    file.write(HEAD.pack(MAGIC, size, digest.digest()))


def _with_config(config: bytes, responses: Iterable[bytes]) -> Iterator[bytes]:
    yield config
    yield from responses


def _settle(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


@contextmanager
def open_state(path: Path) -> Iterator[Iterator[bytes] | None]:
    """Check a file, and yield its messages one at a time; None where there is no file.

    Raises:
        StateFileError: it cannot be read, others may have written it, or it is damaged or
            something else.
    """
    try:
        file = open_regular(path)
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        raise unusable(path, f"{error.strerror or error}") from None
    with file:
        try:
            size = _checked_size(file, path)
        except OSError as error:
            raise unusable(path, f"{error.strerror or error}") from None
        yield _messages(file, size, path)


def unusable(path: Path, why: str) -> StateFileError:
    """Return the error for a file that cannot be used.

    Args:
        path: of the file.
        why: what is wrong with it, as part of a sentence.

    Returns:
        The error.
    """
    return StateFileError(
        f"The state of the switch in {path} cannot be used: {why}. Remove it to begin without, or "
        "name another file (--state)."
    )


def _checked_size(file: BinaryIO, path: Path) -> int:
    found = os.fstat(file.fileno())
    if found.st_uid not in (os.geteuid(), 0):
        raise unusable(path, f"it belongs to user {found.st_uid}, who is not this one")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise unusable(path, "others may write to it")
    head = file.read(HEAD.size)
    if len(head) < HEAD.size or head[: len(MAGIC)] != MAGIC:
        raise unusable(path, "it is no file of this switch, or of another version")
    _, size, digest = HEAD.unpack(head)
    if size > MOST_BYTES:
        raise unusable(path, f"it says that it has more than {MOST_BYTES >> 30} GiB")
    if found.st_size != HEAD.size + size:
        raise unusable(path, f"it should have {HEAD.size + size:,} bytes and has {found.st_size:,}")
    if _digest(file) != digest:
        raise unusable(path, "its content has changed since it was written")
    file.seek(HEAD.size, io.SEEK_SET)
    return int(size)


def _digest(file: BinaryIO) -> bytes:
    digest = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return digest.digest()


def _messages(file: BinaryIO, size: int, path: Path) -> Iterator[bytes]:
    while size:
        head = file.read(LENGTH.size)
        length = LENGTH.unpack(head)[0] if len(head) == LENGTH.size else size
        size -= LENGTH.size + length
        # A length that leads beyond the end is not believed: nothing is read for it.
        if size < 0 or length > MOST_MESSAGE_BYTES:
            raise unusable(path, "a message in it is longer than the file")
        message = file.read(length)
        if len(message) != length:
            raise unusable(path, "it has become shorter meanwhile")
        yield message


_ENTITIES_PER_RESPONSE = 1024


@dataclass(frozen=True)
class Snapshot:
    """A program, its entries, default actions, groups and sessions.

    What packets have changed is not part of it: registers, and what was counted. Of a moment that
    is over they would say what is no longer true, such as how far an exchange has come.

    Attributes:
        pipeline: the program.
        entries: those of each table.
        defaults: the default actions that are not the program's own.
        replication: multicast groups and clone sessions.
    """

    pipeline: InstalledPipeline
    entries: tuple[tuple[TableSchema, Iterable[Entry]], ...]
    defaults: tuple[p4r.Entity, ...]
    replication: tuple[p4r.Entity, ...]

    def responses(self) -> Iterator[bytes]:
        """Yield all of it as serialized ReadResponses, in pieces that fit a message."""
        yield from _pieces((*self.defaults, *self.replication))
        for schema, entries in self.entries:
            yield from self._table(schema, entries)

    def _table(self, schema: TableSchema, entries: Iterable[Entry]) -> Iterable[bytes]:
        if self.pipeline.batches is not None:
            answers = self.pipeline.batches.answers(schema.ident, entries, _ENTITIES_PER_RESPONSE)
            if answers is not None:
                return answers
        return _pieces(encode_entries(schema, entries, False))


def take_snapshot(device: Device, pipeline: InstalledPipeline) -> Snapshot:
    """Copy what controllers have set, all of it between the same two packets.

    Args:
        device: the switch.
        pipeline: the installed program.

    Returns:
        The copy.
    """
    return device.call(lambda: _copy(pipeline))


def _copy(pipeline: InstalledPipeline) -> Snapshot:
    tables = pipeline.state.tables
    schemas = pipeline.schema.tables.values()
    return Snapshot(
        pipeline,
        tuple((each, tables[each.name].snapshot()) for each in schemas if not each.constant),
        tuple(
            encode_default(each, tables[each.name].default[0])
            for each in schemas
            if tables[each.name].default[0][:2] != tables[each.name].initial_default[:2]
        ),
        (*map(_group, pipeline.groups.values()), *map(_session, pipeline.sessions.values())),
    )


def _group(group: p4r.MulticastGroupEntry) -> p4r.Entity:
    entry = p4r.PacketReplicationEngineEntry(multicast_group_entry=group)
    return p4r.Entity(packet_replication_engine_entry=entry)


def _session(session: p4r.CloneSessionEntry) -> p4r.Entity:
    entry = p4r.PacketReplicationEngineEntry(clone_session_entry=session)
    return p4r.Entity(packet_replication_engine_entry=entry)


def _pieces(entities: Iterable[p4r.Entity]) -> Iterator[bytes]:
    piece: list[p4r.Entity] = []
    for entity in entities:
        piece.append(entity)
        if len(piece) == _ENTITIES_PER_RESPONSE:
            yield p4r.ReadResponse(entities=piece).SerializeToString()
            piece = []
    if piece:
        yield p4r.ReadResponse(entities=piece).SerializeToString()


_LOG = logging.getLogger("softswitch.state")
# The longest part of the time that writing may take.
_SHARE = 0.1


class Keeper:
    """Keeps the file up to date in a thread of its own.

    Args:
        path: of the file.
        device: the switch.
        configs: its programs.
        changed: set by what changes the switch.
        interval: seconds from a change to the file that has it, at least.

    Raises:
        StateFileError: no file can be written there.
    """

    def __init__(
        self,
        path: Path,
        device: Device,
        configs: PipelineConfigs,
        changed: threading.Event,
        interval: float,
    ) -> None:
        check_place(path)
        self._path = path
        self._device = device
        self._configs = configs
        self._changed = changed
        self._interval = interval
        self._stopping = threading.Event()
        self._failed = False
        self._thread = threading.Thread(target=self._run, name="softswitch-state", daemon=True)

    def start(self) -> None:
        """Begin to write what changes."""
        self._thread.start()

    def stop(self) -> None:
        """Write what is not written yet; nobody may change the switch any more.

        Raises:
            StateFileError: that failed.
        """
        left = self._changed.is_set()
        self._stopping.set()
        self._changed.set()
        self._thread.join()
        if left or self._failed:
            self._write()

    def _run(self) -> None:
        while True:
            self._changed.wait()
            # The changes of an install come together.
            if self._stopping.wait(self._interval):
                return
            self._changed.clear()
            begin = time.monotonic()
            try:
                self._write()
            except StateFileError as error:
                self._tell(error)
            else:
                self._failed = False
            took = time.monotonic() - begin
            if self._stopping.wait(took * (1 / _SHARE - 1)):
                return

    def _tell(self, error: StateFileError) -> None:
        if not self._failed:
            _LOG.warning("%s", error)
        self._failed = True
        self._changed.set()

    def _write(self) -> None:
        pipeline = self._configs.current
        if pipeline is None:
            write_state(self._path, b"", ())
            return
        snapshot = take_snapshot(self._device, pipeline)
        write_state(self._path, pipeline.config.SerializeToString(), snapshot.responses())
