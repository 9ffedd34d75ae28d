# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""A link that carries few frames per second."""

import time


class SlowLink:
    """Every frame takes its time on another link, each way."""

    def __init__(self, link, frames_per_second):
        self._link = link
        self._seconds = 1 / frames_per_second

    def send(self, frame):
        time.sleep(self._seconds)
        self._link.send(frame)

    def receive(self, seconds):
        frame = self._link.receive(seconds)
        if frame is not None:
            time.sleep(self._seconds)
        return frame

    def __enter__(self):
        self._link.__enter__()
        return self

    def __exit__(self, *raised):
        self._link.__exit__(*raised)

    def __getattr__(self, name):
        return getattr(self._link, name)
