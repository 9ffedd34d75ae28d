"""Runs the PTF cases on every switch that is available here; see README.md."""

from collections.abc import Iterator

import pytest

from tests.ptf.switchgnn_ptf.mistakes import MISTAKES, NOTICED_BY, NOTICED_ON
from tests.ptf.switchgnn_ptf.runner import ON_PYTHON, SETTINGS, CaseResult, Runner, find_cases
from tests.ptf.switchgnn_ptf.tofino import DOES_NOT_APPLY, TOFINO
from tests.support.markers import full

MOST_LEFT_OUT = 32  # 14 of them are the strawman's


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
    apply = [case for case in dict.fromkeys(selected) if not left_out(case, runner)]
    return runner.run(apply) if apply else {}


def left_out(case: str, runner: Runner) -> str:
    """Return why a case does not apply to the program of a switch, or nothing."""
    return DOES_NOT_APPLY.get(case, "") if runner.name == TOFINO else ""


@pytest.mark.parametrize("case", find_cases())
def test_case(case: str, runner: Runner, results: dict[str, CaseResult]) -> None:
    if reason := left_out(case, runner):
        pytest.skip(reason)
    result = results[case]
    if (result.failure, result.error) != (None, None):
        pytest.fail(result.failure or result.error or "", pytrace=False)


def test_few_cases_are_left_out_and_all_exist() -> None:
    assert set(DOES_NOT_APPLY) <= set(find_cases())
    assert len(DOES_NOT_APPLY) <= MOST_LEFT_OUT


# One mistake each in sums, duplicates, the strawman, leaf-spines, jobs and the Tofino program; each
# takes a process.
FIRST = (
    "carry_between_lanes",
    "forget_sources",
    "add_what_overflows",
    "forget_the_level",
    "reach_the_neighbours_slots",
    "add_to_older_sums",
)


# The oracles are the same on every switch: one is enough to show that they can fail, and on Python
# no program is compiled.
@pytest.mark.parametrize(
    ("runner", "mistake"),
    [
        pytest.param(NOTICED_ON.get(name, ON_PYTHON), name, marks=[] if name in FIRST else full)
        for name in MISTAKES
    ],
    indirect=["runner"],
)
def test_mistake_is_noticed(mistake: str, runner: Runner) -> None:
    case = NOTICED_BY[mistake]
    result = runner.run([case], mistake=mistake)[case]
    assert result.error is None, result.error
    assert result.failure is not None, f"{case} did not notice {mistake}"
