# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Sums of inputs that never change, made once."""

import weakref

from torch import Tensor

from switchgnn.training.sums.ledger import Ledger


class KeptSum:
    """The sums of an input that does not change, kept after the first exchange.

    Where summing before the linear map sends wider rows, it pays only after some passes, and their
    number is not known in advance. Rows are then sent mapped until as many elements have been sent
    as the wider rows have (the rule for ski rental), which is at most twice the optimum.

    Args:
        ledger: counts the passes that needed no exchange.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._inputs: weakref.ref[Tensor] | None = None
        self._version = 0
        self._sums: Tensor | None = None
        self._sent = 0

    def of(self, inputs: Tensor) -> Tensor | None:
        """Return the sums that were kept of these inputs, or None."""
        known = None if self._inputs is None else self._inputs()
        version = -1 if inputs.is_inference() else inputs._version
        if known is not inputs or version < 0 or version != self._version:
            self._inputs, self._version = weakref.ref(inputs), version
            self._sums, self._sent = None, 0
        if self._sums is not None:
            self._ledger.kept += 1
        return self._sums

    def keep(self, sums: Tensor) -> None:
        """Keep the sums of the inputs that :meth:`of` was called with last."""
        self._sums = sums

    def pays(self, elements: int) -> bool:
        """Return whether as many elements of a row of the same inputs have been sent already."""
        return self._sent >= elements

    def sent(self, elements: int) -> None:
        """Count the elements of a row that are sent mapped in this pass."""
        self._sent += elements
