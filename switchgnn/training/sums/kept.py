# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Sums of inputs that never change, made once."""

import weakref

from torch import Tensor

from switchgnn.training.sums.ledger import Ledger


class KeptSum:
    """The sum of an input that does not change, kept once it has been made.

    Summing first may send wider rows than mapping first, but only once. It is done when as many
    elements of the same input have travelled mapped, so at most twice as many travel as would
    have with the number of passes known in advance.

    Args:
        ledger: counts the passes that needed no exchange.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._inputs: weakref.ref[Tensor] | None = None
        self._version = 0
        self._sums: Tensor | None = None
        self._travelled = 0

    def of(self, inputs: Tensor) -> Tensor | None:
        """Return the sums that were kept of these inputs, or None."""
        known = None if self._inputs is None else self._inputs()
        version = -1 if inputs.is_inference() else inputs._version
        if known is not inputs or version < 0 or version != self._version:
            self._inputs, self._version = weakref.ref(inputs), version
            self._sums, self._travelled = None, 0
        if self._sums is not None:
            self._ledger.kept += 1
        return self._sums

    def keep(self, sums: Tensor) -> None:
        """Keep the sums of the inputs that :meth:`of` was called with last."""
        self._sums = sums

    def pays(self, elements: int) -> bool:
        """Return whether as many elements of the same inputs have travelled already."""
        return self._travelled >= elements

    def travelled(self, elements: int) -> None:
        """Count the elements of a row that travel mapped in this pass."""
        self._travelled += elements
