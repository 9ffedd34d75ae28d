"""A plan that others may have made is checked before a switch hears of it."""

import os
import random
import shutil

import pytest

from switchgnn.base.files import reason_to_distrust
from switchgnn.controller.base.plan import load_plan
from switchgnn.planner import PlannerError, build_plan, write_plan
from switchgnn.planner.check.foreign import trusted_plan
from tests.controller.plans import run, write_ring
from tests.planner.alterations import ALTERATIONS
from tests.planner.forgery import content_of, write_content
from tests.planner.helpers import random_graph, refusal_of
from tests.support.markers import needs_root


@pytest.fixture
def folder(tmp_path, program):
    usual = os.umask(0o022)
    try:
        write_ring(tmp_path / "plan", program)
    finally:
        os.umask(usual)
    return tmp_path / "plan"


def said_of(folder, **options):
    """What is said about a plan, and whether it is read where it is."""
    said = []
    return said, trusted_plan(folder, said.append, **options) == folder


def test_ones_own_plan_is_read_where_it_is(folder):
    assert reason_to_distrust(folder) is None
    assert said_of(folder) == ([], True)


@pytest.mark.parametrize("name", [".", "switch.safetensors", "plan.json", "worker-001.safetensors"])
def test_what_others_may_write_to_is_checked(folder, name):
    (folder / name).chmod(0o777)
    said, in_place = said_of(folder)
    assert said == [
        f"Checking the plan {folder} first: others may write to {(folder / name).resolve()}."
    ]
    assert not in_place
    assert said_of(folder, check=False) == ([], True)


def test_a_folder_above_that_others_may_write_to(folder, tmp_path):
    """Without the sticky bit anybody can put another folder in its place."""
    tmp_path.chmod(0o777)
    assert f"others may write to {tmp_path}" in str(reason_to_distrust(folder))
    tmp_path.chmod(0o1777)
    assert reason_to_distrust(folder) is None


def test_a_group_may_write(folder):
    """As to all folders of a user with the umask 002."""
    folder.chmod(0o775)
    assert reason_to_distrust(folder) is None


@needs_root
@pytest.mark.parametrize("name", [".", "assignment.safetensors"])
def test_what_belongs_to_another_user_is_checked(folder, name):
    os.chown(folder / name, 12345, 12345)
    assert "belongs to user 12345" in str(reason_to_distrust(folder))
    assert not said_of(folder)[1]


def test_a_file_removed_while_the_folder_is_read_is_no_reason(folder, monkeypatch):
    """Another process that compiles into the same cache removes its temporary folder."""
    listed = [*folder.iterdir(), folder / "removed"]
    monkeypatch.setattr(type(folder), "iterdir", lambda _: iter(listed))
    assert reason_to_distrust(folder) is None


def test_a_link_in_a_plan_is_no_part_of_it(folder, tmp_path):
    shutil.move(folder / "switch.safetensors", tmp_path / "elsewhere")
    (folder / "switch.safetensors").symlink_to(tmp_path / "elsewhere")
    assert "switch.safetensors is a link" in str(reason_to_distrust(folder))


def test_what_is_checked_is_what_is_installed(folder):
    """Changes that come after the check reach nobody."""
    where = trusted_plan(folder, lambda _: None, check=True)
    (folder / "switch.safetensors").write_bytes(b"")
    assert len(load_plan(where).switch.source_vertex)


def test_a_pipe_in_a_plan_is_not_waited_for(folder):
    (folder / "switch.safetensors").unlink()
    os.mkfifo(folder / "switch.safetensors")
    folder.chmod(0o777)
    with pytest.raises(PlannerError, match="not a regular file"):
        said_of(folder)


def test_a_file_in_a_plan_that_costs_its_maker_nothing(folder):
    """Terabytes of nothing would fill memory and the folder for temporary files."""
    os.truncate(folder / "switch.safetensors", 1 << 40)
    with pytest.raises(PlannerError, match=r"more than 4,294,967,296 bytes"):
        said_of(folder, check=True)


def test_a_link_that_is_turned_behind_the_check_leads_nowhere_else(folder, tmp_path):
    """The link may lie where anybody can replace it, and lead to a plan of one's own at first."""
    (tmp_path / "link").symlink_to(folder)
    where = trusted_plan(tmp_path / "link", lambda _: None)
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("/nowhere")
    assert load_plan(where)


@pytest.fixture(scope="module")
def plan(program):
    graph = random_graph(60, 300, 3, directed=True)
    return build_plan(graph, workers=4, slots=20, program=program.digest, directions="both")


def test_the_command_says_that_it_checks_and_writes_nothing(plan, tmp_path, fake):
    folder = tmp_path / "altered"
    content = content_of(plan)
    ALTERATIONS["a contribution moved"](content, random.Random(0))
    write_content(content, folder)
    folder.chmod(0o777)
    for command in ("install", "watch"):
        result = run(command, folder, "--address", fake.address)
        assert isinstance(result.exception, PlannerError)
        assert "is not used: " in str(result.exception)
        assert f"Checking the plan {folder} first: others may write to {folder}." in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert not fake.pushes
    result = run("install", folder, "--address", fake.address, "--no-check")
    assert result.exit_code == 0, result.output
    assert fake.pushes == 1


def test_the_sentence_names_the_folder_of_the_user(plan, tmp_path):
    write_plan(plan, tmp_path / "plan")
    (tmp_path / "plan" / "worker-000.safetensors").write_bytes(b"")
    said = refusal_of(PlannerError, said_of, tmp_path / "plan", check=True)
    assert f"{tmp_path}/plan/worker-000.safetensors does not belong to this plan" in said
