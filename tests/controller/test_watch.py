"""A watched switch gets its plan back, unless somebody else uses it: a run, or another plan."""

import threading
from dataclasses import replace

import pytest
from finsy.proto import p4r

from switchgnn import controller
from switchgnn.base.network import network_on
from switchgnn.controller.base.errors import NoPrimaryError, NotPrimaryError, OtherPlanError
from switchgnn.controller.base.place import ALONE
from switchgnn.controller.controls.job import Jobs
from switchgnn.controller.jobs import remove_job
from switchgnn.controller.p4runtime.layout import Layout, parse_p4info
from switchgnn.controller.p4runtime.rows import INSERT, no_rows, row_update
from switchgnn.controller.target import served_jobs, served_plan
from switchgnn.controller.watch import watch_jobs
from switchgnn.p4src import load_strawman
from switchgnn.softswitch import Backend, SoftSwitch
from tests.controller.fake_server import Contents
from tests.controller.plans import install, make_plan, observed, same, serve_strawman
from tests.support.speed import seconds_here

PLAN, OTHER = make_plan(), make_plan(2, sources=3)


def client_of(address, election_id=1):
    return controller.P4RuntimeClient(address, election_id=election_id, deadline=seconds_here(3))


class Stop(threading.Event):
    """Tells when a watch has looked at its switches."""

    def __init__(self):
        super().__init__()
        self.looked = threading.Semaphore(0)

    def wait(self, timeout=None):
        self.looked.release()
        return super().wait(timeout)


class Watching:
    """A watch of PLAN, or of the jobs that are there, in a thread, and what it has told."""

    def __init__(self, *what):
        self.told = []
        self._news = threading.Condition()
        self._stop = Stop()
        self.error = None
        self._thread = threading.Thread(target=self._run, args=what, daemon=True)

    def _run(self, clients, network, program, plan=PLAN):
        options = {"on_event": self._on_event, "stop": self._stop, "interval": 0.05}
        try:
            if plan is None:
                watch_jobs(clients, program, **options)
            else:
                shares = [controller.Share(plan, network, client) for client in clients]
                controller.watch(shares, controller.DesiredStates(program), **options)
        except Exception as error:
            self.error = error

    def _on_event(self, event):
        with self._news:
            self.told.append(event)
            self._news.notify_all()

    def wait_for(self, kind, times=1, words=""):
        with self._news:

            def found():
                of_kind = [event for event in self.told if event.kind is kind]
                return [event for event in of_kind if words in event.message][times - 1 :]

            assert self._news.wait_for(found, seconds_here()), (kind, self.told, self.error)
            return found()[0]

    def looks(self):
        """Wait until the watch has begun another look at its switches, and ended it."""
        while self._stop.looked.acquire(blocking=False):
            pass
        for _ in range(2):
            assert self._stop.looked.acquire(timeout=seconds_here()), self.error

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
    client = controller.P4RuntimeClient(fake.address, deadline=seconds_here(1))
    with Watching([client], network, program) as watching:
        watching.wait_for(controller.WatchEventKind.INSTALLED)
        yield watching
    assert watching.error is None
    assert not client.alive


def test_a_switch_that_is_away_for_a_while_is_waited_for(fake, watching):
    fake.stop()
    assert "No switch answers" in watching.wait_for(controller.WatchEventKind.WAITING).message
    fake.restart()
    watching.wait_for(controller.WatchEventKind.INSTALLED, times=2)


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
    words = f"serves plan {OTHER.manifest.number:08x} for job default, which somebody else"
    assert words in str(error)
    assert plan_at(switch) == OTHER.manifest.number


def test_its_own_plan_is_watched_in_its_session(switch, network, program):
    session = bring(switch, PLAN, network, program)
    with Watching([client_of(switch)], network, program) as watching:
        watching.wait_for(controller.WatchEventKind.INSTALLED)
    assert watching.error is None
    assert bring(switch, PLAN, network, program) == session


def test_a_plan_that_somebody_installs_meanwhile_is_not_replaced(switch, network, program):
    with Watching([client_of(switch)], network, program) as watching:
        watching.wait_for(controller.WatchEventKind.INSTALLED)
        bring(switch, OTHER, network, program, election_id=2)
        watching.join()
    assert isinstance(watching.error, OtherPlanError)
    assert plan_at(switch) == OTHER.manifest.number


def test_a_plan_of_another_program_is_not_replaced(switch, network, program):
    with client_of(switch) as client:
        serve_strawman(client, ALONE)
    assert isinstance(refused(switch, network, program), OtherPlanError)
    assert plan_at(switch) == 0xABCD


def test_a_program_without_a_plan_is_replaced(switch, network, program):
    with client_of(switch) as client:
        serve_strawman(client)
    with Watching([client_of(switch)], network, program) as watching:
        watching.wait_for(controller.WatchEventKind.INSTALLED)
    assert plan_at(switch) == PLAN.manifest.number


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
        controller.clear(running)


def test_a_controller_that_is_gone_keeps_nobody_away(switch, network, program):
    bring(switch, PLAN, network, program, election_id=5)
    error = refused(switch, network, program, election_id=4)
    assert isinstance(error, NoPrimaryError)
    assert "give --election-id 5" in str(error)
    with Watching([client_of(switch, 5)], network, program) as watching:
        watching.wait_for(controller.WatchEventKind.INSTALLED)
    assert watching.error is None


def test_who_has_taken_over_is_not_disturbed(switch, network, program):
    with Watching([client_of(switch)], network, program) as watching:
        watching.wait_for(controller.WatchEventKind.INSTALLED)
        with client_of(switch, 2) as other:
            controller.clear(other)
            assert "no longer obeys" in watching.wait_for(controller.WatchEventKind.LOST).message
            told = watching.wait_for(controller.WatchEventKind.WAITING).message
            assert "under the control of somebody else" in told
            assert plan_at(switch) == 0
            assert other.alive
    assert watching.error is None


BESIDE = make_plan(4, workers=2)


def jobs_at(address):
    """The session, the plan and `any_tag` of each job."""
    with client_of(address).another() as observer:
        return {
            place.name: (entry.session, entry.plan, entry.any_tag)
            for place, entry in served_jobs(observer)
        }


def without_sessions(address, layout):
    held = observed(address, layout)
    return replace(held, rows={**held.rows, "session": no_rows(layout.table("session"))})


@pytest.fixture
def two_jobs(fake, network, program):
    """PLAN as the usual job in session 1, and BESIDE as job b in session 3."""
    bring(fake.address, PLAN, network, program)
    for new_session in (False, True):
        options = {"program": program, "new_session": new_session}
        install(BESIDE, [fake.address], network_on((7, 8)), "b", **options)
    assert jobs_at(fake.address) == {
        "default": (1, PLAN.manifest.number, 0),
        "b": (3, BESIDE.manifest.number, 0),
    }
    return fake


@pytest.mark.parametrize("plan", [None, PLAN], ids=["jobs", "plan"])
def test_a_restarted_switch_gets_all_its_jobs_back(plan, two_jobs, network, program, layout):
    """Its windows of tags are lost."""
    had = without_sessions(two_jobs.address, layout)
    with Watching([client_of(two_jobs.address)], network, program, plan) as watching:
        watching.looks()
        two_jobs.restart()
        assert "no longer serves" in watching.wait_for(controller.WatchEventKind.LOST).message
        said = watching.wait_for(controller.WatchEventKind.INSTALLED, words="restored").message
        assert "of 2 jobs restored (default, b)" in said
        watching.looks()
    assert watching.error is None
    back = {"default": (1, PLAN.manifest.number, 1), "b": (3, BESIDE.manifest.number, 1)}
    assert jobs_at(two_jobs.address) == back
    assert same(layout, without_sessions(two_jobs.address, layout), had)


def test_a_removed_job_does_not_come_back(two_jobs, network, program):
    with Watching([client_of(two_jobs.address)], network, program, None) as watching:
        watching.looks()
        with client_of(two_jobs.address, 2) as other:
            remove_job([other], "b")
        watching.looks()
        two_jobs.restart()
        said = watching.wait_for(controller.WatchEventKind.INSTALLED, words="restored").message
        assert "(default)" in said
    assert jobs_at(two_jobs.address).keys() == {"default"}


def test_a_switch_of_another_program_with_jobs_is_left_alone(two_jobs, network, program):
    strawman = load_strawman()
    rows = Jobs(Layout.from_text(strawman.p4info)).encode(replace(ALONE, name="theirs"))
    with Watching([client_of(two_jobs.address)], network, program, None) as watching:
        watching.looks()
        # As if a controller had come and gone between two looks.
        config = p4r.ForwardingPipelineConfig()
        config.p4info.CopyFrom(parse_p4info(strawman.p4info))
        config.cookie.cookie = controller.program_cookie(strawman)
        two_jobs.contents = Contents(config=config)
        two_jobs._apply(row_update(INSERT, rows.table, rows.data[0]), None)
        watching.looks()
        assert jobs_at(two_jobs.address) == {"theirs": (0, 0, 0)}
    assert (watching.told, watching.error) == ([], None)


def test_a_job_that_another_controller_installs_comes_back_too(tmp_path, network, program):
    address = f"unix:{tmp_path}/switch.sock"
    switch = SoftSwitch(grpc=address, backend=Backend.PYTHON)
    switch.start()
    try:
        bring(address, PLAN, network, program)
        with Watching([client_of(address)], network, program, None) as watching:
            watching.looks()
            with client_of(address, 2) as other:
                install(BESIDE, [other], network_on((7, 8)), "b", program=program)
            # It cannot be the primary again, but it looks on.
            watching.wait_for(controller.WatchEventKind.WAITING, words="give --election-id 2")
            switch.stop()
            switch = SoftSwitch(grpc=address, backend=Backend.PYTHON)
            switch.start()
            said = watching.wait_for(controller.WatchEventKind.INSTALLED, words="restored").message
            assert "(default, b)" in said
        assert watching.error is None
        assert jobs_at(address) == {
            "default": (1, PLAN.manifest.number, 1),
            "b": (2, BESIDE.manifest.number, 1),
        }
    finally:
        switch.stop()
