# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the known run anew: `python -m tests.virtual.diagrams`. Look at it before it stays."""

from pathlib import Path

from switchgnn.lab.virtual.diagram.drawing import draw, svg_of, text_of
from switchgnn.lab.virtual.draw import Wish
from switchgnn.lab.virtual.scenario import read_scenario
from switchgnn.lab.virtual.soak import Soak
from tests.virtual.mistaken import sums_that_are_recalled_are_wrong

RUN = Path(__file__).parent / "a_lost_sum.json"


def main():
    scenario = read_scenario(RUN)
    with sums_that_are_recalled_are_wrong():
        trace = Soak(Wish()).run(scenario, keeps_trace=True).trace
    drawing = draw(scenario, trace, "sums exact")
    texts = {"trace": "\n".join(trace) + "\n", "txt": text_of(drawing), "svg": svg_of(drawing)}
    for suffix, text in texts.items():
        RUN.with_suffix(f".{suffix}").write_text(text)


if __name__ == "__main__":
    main()
