# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The errors of the commands themselves."""

from switchgnn.base.errors import SwitchGNNError


class PlotError(SwitchGNNError):
    """A plot could not be made."""


class ConfigError(SwitchGNNError):
    """A file with options cannot be read, or has what is no option."""


class ProgramError(SwitchGNNError):
    """The P4 program that a switch is to begin with is not there, or is something else."""
