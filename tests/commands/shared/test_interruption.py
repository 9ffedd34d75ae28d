# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM end work once, and whoever presses again does not stop the cleaning up."""

import signal

import pytest

from switchgnn.commands.shared.console import Interruption

SIGNALS = [signal.SIGINT, signal.SIGTERM]


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_the_first_one_ends_work_and_others_are_noted(number):
    with Interruption() as interruption:
        interruption.at_once()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        try:
            for again in SIGNALS:
                signal.raise_signal(again)
        except KeyboardInterrupt:
            pytest.fail("The cleaning up was interrupted.")
        assert interruption.came


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_later_means_later(number):
    with Interruption() as interruption:
        interruption.at_once()
        interruption.later()
        signal.raise_signal(number)
        assert interruption.came


def test_handlers_come_back():
    before = [signal.getsignal(number) for number in SIGNALS]
    with Interruption():
        assert [signal.getsignal(number) for number in SIGNALS] != before
    assert [signal.getsignal(number) for number in SIGNALS] == before
