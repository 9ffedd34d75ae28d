# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the state of a switch to a file: soon after it has changed, and when the switch ends."""

import logging
import threading
import time
from pathlib import Path

from switchgnn.softswitch.daemon.snapshot import take_snapshot
from switchgnn.softswitch.daemon.state_file import check_place, write_state
from switchgnn.softswitch.errors import StateFileError
from switchgnn.softswitch.p4runtime.device import Device
from switchgnn.softswitch.p4runtime.pipeline_config import PipelineConfigs

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
