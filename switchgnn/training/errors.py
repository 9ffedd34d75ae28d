# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The error class of training."""

from switchgnn.errors import SwitchGNNError


class DatasetError(SwitchGNNError):
    """A data set, or a part of one on disk, that cannot be used, in one sentence."""


class TrainingError(SwitchGNNError):
    """A training that cannot be done as asked, in one sentence."""


class UnsupportedLayerError(TrainingError):
    """A layer that cannot be computed with sums of per-source rows."""
