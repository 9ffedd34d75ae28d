# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The panels of options in help texts, the same for all commands."""

DATA = "Data"
MODEL = "Model"
TRAINING = "Training"
EXCHANGE = "Exchange"
PLAN = "Plan"
NETWORK = "Network"
CONGESTION = "Congestion"
FAULTS = "Faults"
VIRTUAL_TIME = "Virtual time"
PACKETS = "Which packets"
OUTPUT = "Output"
