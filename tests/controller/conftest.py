"""A fake switch, and what is installed on it."""

import pytest

from switchgnn.controller import P4RuntimeClient, star_network
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.p4src import load_program
from tests.controller.fake_server import FakeSwitch
from tests.support.speed import seconds_here


@pytest.fixture(scope="session")
def program():
    return load_program()


@pytest.fixture(scope="session")
def layout(program):
    return Layout.from_text(program.p4info)


@pytest.fixture(scope="session")
def network():
    return star_network(4)


def _fake_switch():
    switch = FakeSwitch().start()
    yield switch
    switch.stop()


fake, other_fake = pytest.fixture(_fake_switch), pytest.fixture(_fake_switch)


@pytest.fixture
def client(fake):
    with P4RuntimeClient(fake.address, deadline=seconds_here(3)) as client:
        yield client
