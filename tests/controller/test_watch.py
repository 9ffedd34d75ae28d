"""A watched switch gets its plan back, unless somebody else uses it: a run, or another plan."""

import threading

import pytest
from finsy.proto import p4r

from switchgnn.controller import (
    DesiredStates,
    P4RuntimeClient,
    Share,
    WatchEventKind,
    clear,
    program_cookie,
    watch,
)
from switchgnn.controller.base.errors import NoPrimaryError, NotPrimaryError, OtherPlanError
from switchgnn.controller.base.place import ALONE
from switchgnn.controller.controls.job import Job
from switchgnn.controller.controls.session import Session, SessionEntry
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.controller.p4runtime.rows import INSERT, row_update
from switchgnn.controller.target import served_plan
from switchgnn.p4src import load_strawman
from switchgnn.softswitch import Backend, SoftSwitch
from tests.controller.plans import install, make_plan
from tests.support.speed import seconds_here

PLAN, OTHER = make_plan(), make_plan(2, sources=3)


def client_of(address, election_id=1):
    return P4RuntimeClient(address, election_id=election_id, deadline=seconds_here(3))


class Watching:
    """A watch in a thread, and what it has told."""

    def __init__(self, clients, network, program, **options):
        self._told = []
        self._news = threading.Condition()
        self._stop = threading.Event()
        self.error = None
        self._thread = threading.Thread(
            target=self._run, args=(clients, network, program, options), daemon=True
        )

    def _run(self, clients, network, program, options):
        try:
            watch(
                [Share(PLAN, network, client) for client in clients],
                DesiredStates(program),
                on_event=self._on_event,
                stop=self._stop,
                interval=0.05,
                **options,
            )
        except Exception as error:
            self.error = error

    def _on_event(self, event):
        with self._news:
            self._told.append(event)
            self._news.notify_all()

    def wait_for(self, kind, times=1):
        with self._news:
            found = []

            def enough():
                found[:] = [event for event in self._told if event.kind is kind]
                return len(found) >= times

            assert self._news.wait_for(enough, seconds_here()), (kind, self._told, self.error)
            return found[times - 1]

    def join(self):
        self._thread.join(seconds_here())
        assert not self._thread.is_alive()

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self.join()


@pytest.fixture
def watching(fake, network, program):
    client = P4RuntimeClient(fake.address, deadline=seconds_here(1))
    with Watching([client], network, program) as watching:
        watching.wait_for(WatchEventKind.INSTALLED)
        yield watching
    assert watching.error is None
    assert not client.alive


def test_a_restarted_switch_is_installed_again(fake, watching):
    fake.restart()
    assert "no longer serves" in watching.wait_for(WatchEventKind.LOST).message
    watching.wait_for(WatchEventKind.INSTALLED, times=2)
    assert len(fake.contents.groups) == 1 + 3 * 8


def test_a_switch_that_is_away_for_a_while_is_waited_for(fake, watching):
    fake.stop()
    assert "No switch answers" in watching.wait_for(WatchEventKind.WAITING).message
    fake.restart()
    watching.wait_for(WatchEventKind.INSTALLED, times=2)


@pytest.fixture
def switch(tmp_path):
    """A real one, which tells a controller that another has taken its place."""
    address = f"unix:{tmp_path}/switch.sock"
    with SoftSwitch(grpc=address, backend=Backend.PYTHON):
        yield address


def bring(address, plan, network, program, election_id=1):
    with client_of(address, election_id) as client:
        return install(plan, [client], network, program=program).session


def plan_at(address):
    with client_of(address).another() as observer:
        return served_plan(observer)


def refused(address, network, program, election_id=1):
    """The watch ends at once; return why."""
    with Watching([client_of(address, election_id)], network, program) as watching:
        watching.join()
    return watching.error


def test_another_plan_is_not_replaced(switch, network, program):
    bring(switch, OTHER, network, program)
    error = refused(switch, network, program)
    assert isinstance(error, OtherPlanError)
    assert f"serves plan {OTHER.number:08x} for job default, which somebody else" in str(error)
    assert plan_at(switch) == OTHER.number


def test_its_own_plan_is_watched_in_its_session(switch, network, program):
    session = bring(switch, PLAN, network, program)
    with Watching([client_of(switch)], network, program) as watching:
        watching.wait_for(WatchEventKind.INSTALLED)
    assert watching.error is None
    assert bring(switch, PLAN, network, program) == session


def test_a_plan_that_somebody_installs_meanwhile_is_not_replaced(switch, network, program):
    with Watching([client_of(switch)], network, program) as watching:
        watching.wait_for(WatchEventKind.INSTALLED)
        bring(switch, OTHER, network, program, election_id=2)
        watching.join()
    assert isinstance(watching.error, OtherPlanError)
    assert plan_at(switch) == OTHER.number


def test_a_plan_of_another_program_is_not_replaced(switch, network, program):
    strawman = load_strawman()
    layout = Layout.from_text(strawman.p4info)
    rows = Job(layout).encode(ALONE), Session(layout).encode(1, SessionEntry(3, 0xABCD, 7, 0))
    with client_of(switch) as client:
        client.set_pipeline(strawman, program_cookie(strawman))
        client.write([row_update(INSERT, each.table, each.data[0]) for each in rows])
    assert isinstance(refused(switch, network, program), OtherPlanError)
    assert plan_at(switch) == 0xABCD


def test_a_program_without_a_plan_is_replaced(switch, network, program):
    strawman = load_strawman()
    with client_of(switch) as client:
        client.set_pipeline(strawman, program_cookie(strawman))
    with Watching([client_of(switch)], network, program) as watching:
        watching.wait_for(WatchEventKind.INSTALLED)
    assert plan_at(switch) == PLAN.number


def test_a_program_of_others_serves_no_plan(fake):
    config = p4r.ForwardingPipelineConfig()
    config.p4info.SetInParent()
    fake.contents.config = config
    with client_of(fake.address).another() as observer:
        assert served_plan(observer) == 0


@pytest.mark.parametrize("election_id", [1, 2])
def test_a_controller_at_work_keeps_its_place(election_id, switch, network, program):
    with client_of(switch) as running:
        install(PLAN, [running], network, program=program)
        error = refused(switch, network, program, election_id)
        assert isinstance(error, NotPrimaryError)
        assert "wait until it is done, as a `switchgnn run` or `train`" in str(error)
        assert running.alive
        clear(running)


def test_a_controller_that_is_gone_keeps_nobody_away(switch, network, program):
    bring(switch, PLAN, network, program, election_id=5)
    error = refused(switch, network, program, election_id=4)
    assert isinstance(error, NoPrimaryError)
    assert "give --election-id 5" in str(error)
    with Watching([client_of(switch, 5)], network, program) as watching:
        watching.wait_for(WatchEventKind.INSTALLED)
    assert watching.error is None


def test_who_has_taken_over_is_not_disturbed(switch, network, program):
    with Watching([client_of(switch)], network, program) as watching:
        watching.wait_for(WatchEventKind.INSTALLED)
        with client_of(switch, 2) as other:
            clear(other)
            assert "no longer obeys" in watching.wait_for(WatchEventKind.LOST).message
            told = watching.wait_for(WatchEventKind.WAITING).message
            assert "under the control of somebody else" in told
            assert plan_at(switch) == 0
            assert other.alive
    assert watching.error is None
