"""A transport has one name and one colour in the plots of all commands."""

import pytest

pytest.importorskip("matplotlib")

from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from switchgnn.host.registry import HOST, STRAWMAN, SWITCH, TRANSPORTS
from switchgnn.jobs import plan_plots
from switchgnn.jobs import plots as train_plots
from switchgnn.jobs.plots import colours_of
from switchgnn.lab.experiments.draw import _colours
from switchgnn.lab.experiments.paper import FIGURES, find_figures
from switchgnn.planner.costs.study import MemoryPoint, PartitionPoint
from tests.commands.test_train import report

BY_NAME = {kind.name: kind for kind in TRANSPORTS}
# The systems of simulations that are the transport of another name.
SYSTEMS = {**BY_NAME, "bns-gcn": HOST, **dict.fromkeys(("paper", "best", "auto"), SWITCH)}


def drawn(draw, *arguments):
    axes = Figure().subplots()
    draw(axes, *arguments)
    return {line.get_label(): to_rgb(line.get_color()) for line in axes.get_lines()}


def test_no_two_transports_look_alike():
    every = colours_of(3 * TRANSPORTS)
    assert len(set(every)) == len(every)
    assert len({kind.label for kind in TRANSPORTS}) == len(TRANSPORTS)


@pytest.mark.parametrize("names", [["host", "switch"], ["local", "g3", "host-partial"]])
def test_trainings(names):
    found = drawn(train_plots._loss_over_time, [report(name) for name in names])
    kinds = [BY_NAME[name] for name in names]
    assert found == {kind.label: to_rgb(kind.colour) for kind in kinds}


def test_plans():
    names = list(drawn(plan_plots._boundary, [PartitionPoint(2, 5, 9, 3)]).items())
    assert [colour for _, colour in names] == [to_rgb(HOST.colour), to_rgb(SWITCH.colour)]
    assert all(kind.label in name for kind, (name, _) in zip((HOST, SWITCH), names, strict=True))
    memory = drawn(
        plan_plots._memory, [MemoryPoint(100, {"paper": 0.5, "best": 0.4, "strawman": 1})]
    )
    assert list(memory) == ["SwitchGNN, paper", "SwitchGNN, best", "Straw", HOST.label]
    assert [*memory.values()] == [*colours_of([SWITCH, SWITCH, STRAWMAN, HOST])]


@pytest.mark.parametrize("name", FIGURES)
def test_figures(name):
    (figure,) = find_figures([name])
    first = {}
    for series, colour in _colours(figure.series):
        kind = SYSTEMS[series.system]
        assert series.label.startswith(kind.label)
        first.setdefault(kind.name, colour)
    assert first == {each: to_rgb(BY_NAME[each].colour) for each in first}
