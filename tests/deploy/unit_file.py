# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Reads units of systemd."""

from collections import defaultdict
from pathlib import Path

DEPLOY = Path(__file__).parent.parent.parent / "deploy"


def settings_of(path):
    """The values of each name of a unit, by its section."""
    found, section = defaultdict(lambda: defaultdict(list)), None
    for line in path.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            name, sign, value = line.partition("=")
            assert sign and section, line
            found[section][name].append(value)
    return found
