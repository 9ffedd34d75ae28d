# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The errors of training."""

from switchgnn.errors import SwitchGNNError


class DatasetError(SwitchGNNError):
    """A data set, or a part of one on disk, cannot be used."""


class TrainingError(SwitchGNNError):
    """A training cannot be done as asked."""


class UnsupportedLayerError(TrainingError):
    """A layer cannot be computed with sums of per-source rows."""
