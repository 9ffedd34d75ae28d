"""Runs the PTF cases on every switch that is available here; see README.md."""

from collections.abc import Iterator

import pytest

from tests.ptf.switchgnn_ptf.mistakes import MISTAKES, NOTICED_BY
from tests.ptf.switchgnn_ptf.runner import ON_PYTHON, SETTINGS, CaseResult, Runner, find_cases
from tests.support.markers import some_of


@pytest.fixture(scope="session", params=SETTINGS)
def runner(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runner]:
    setting = SETTINGS[request.param]
    if reason := setting.missing():
        pytest.skip(reason)
    with Runner(setting, tmp_path_factory.mktemp(request.param)) as running:
        yield running


@pytest.fixture(scope="session")
def results(request: pytest.FixtureRequest, runner: Runner) -> dict[str, CaseResult]:
    """Run all cases that were selected for this switch, in one PTF process."""
    selected = [
        item.callspec.params["case"]
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and item.originalname == "test_case"
        and item.function is test_case
        and item.callspec.params["runner"] == runner.name
    ]
    return runner.run(dict.fromkeys(selected))


@pytest.mark.parametrize("case", find_cases())
def test_case(case: str, results: dict[str, CaseResult]) -> None:
    result = results[case]
    if (result.failure, result.error) != (None, None):
        pytest.fail(result.failure or result.error or "", pytrace=False)


# One mistake each in sums, duplicates, the strawman, leaf-spines and jobs; each takes a process.
FIRST = (
    "carry_between_lanes",
    "forget_sources",
    "add_what_overflows",
    "forget_the_level",
    "reach_the_neighbours_slots",
)


# The oracles are the same on every switch: one is enough to show that they can fail, and on this
# one no program is compiled.
@pytest.mark.parametrize("runner", [ON_PYTHON], indirect=True)
@pytest.mark.parametrize(
    "mistake", some_of(lambda index: list(MISTAKES)[index] in FIRST, list(MISTAKES))
)
def test_mistake_is_noticed(mistake: str, runner: Runner) -> None:
    case = NOTICED_BY[mistake]
    result = runner.run([case], mistake=mistake)[case]
    assert result.error is None, result.error
    assert result.failure is not None, f"{case} did not notice {mistake}"
