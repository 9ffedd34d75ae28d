"""A transport has one name and one colour in the plots of all commands."""

import pytest

pytest.importorskip("matplotlib")

from matplotlib.colors import to_rgb

from switchgnn.host.registry import HOST, SWITCH, TRANSPORTS
from switchgnn.jobs.plots import colours_of
from switchgnn.lab.experiments.draw import _colours
from switchgnn.lab.experiments.paper import FIGURES, find_figures

BY_NAME = {kind.name: kind for kind in TRANSPORTS}
# The systems of simulations that are the transport of another name.
SYSTEMS = {**BY_NAME, "bns-gcn": HOST, **dict.fromkeys(("paper", "best", "auto"), SWITCH)}


def test_no_two_transports_look_alike():
    every = colours_of(3 * TRANSPORTS)
    assert len(set(every)) == len(every)
    assert len({kind.label for kind in TRANSPORTS}) == len(TRANSPORTS)


# Those of partitions have no system.
@pytest.mark.parametrize("name", sorted(FIGURES.keys() - {"figure1", "figure7", "figure9"}))
def test_figures(name):
    (figure,) = find_figures([name])
    first = {}
    for series, colour in _colours(figure.series):
        kind = SYSTEMS[series.system]
        assert series.label.startswith(kind.label)
        first.setdefault(kind.name, colour)
    assert first == {each: to_rgb(BY_NAME[each].colour) for each in first}
