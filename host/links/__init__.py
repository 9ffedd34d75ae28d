# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""What wraps a link: injected faults, recordings, and halves for two threads."""
