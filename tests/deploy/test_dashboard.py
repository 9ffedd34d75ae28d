"""The dashboard and docs/monitoring.md ask for metrics, labels and options that are there."""

import inspect
import json
import re

import pytest
import yaml

from switchgnn.commands.controller import metrics as metrics_command
from switchgnn.controller import P4RuntimeClient, star_network
from switchgnn.controller.controls.outcome import OUTCOME_CELLS
from switchgnn.controller.metrics import SwitchMetrics
from switchgnn.host.metrics import WorkerView
from switchgnn.p4src import load_program
from tests.controller.fake_server import FakeSwitch
from tests.controller.plans import install, make_plan
from tests.deploy.test_units import DEPLOY
from tests.host.test_metrics import Exchange

DASHBOARD = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
PANELS = DASHBOARD["panels"]
VARIABLES = {each["name"]: each for each in DASHBOARD["templating"]["list"]}
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel.get("targets", ())]
SELECTOR = re.compile(r"(switchgnn_\w+)(?:\{([^}]*)\})?")


@pytest.fixture(scope="module")
def exported():
    """The labels of each name that Prometheus gets."""
    fake = FakeSwitch().start()
    program, plan = load_program(), make_plan()
    try:
        with P4RuntimeClient(fake.address) as client:
            install(plan, [client], star_network(4), program=program)
        fake.contents.counters = {("outcome", OUTCOME_CELLS): 1}  # of the first job
        switches = SwitchMetrics([P4RuntimeClient(fake.address, primary=False)])
        found = list(switches.collect())
        switches.close()
    finally:
        fake.stop()
    found += WorkerView(0, Exchange(), lambda: (0, 0)).collect()
    assert all(family.samples for family in found)
    return {sample.name: set(sample.labels) for family in found for sample in family.samples}


def missing(expression, exported):
    """The names and labels in an expression that nobody exports."""
    found = []
    known = set()
    for name, selectors in SELECTOR.findall(expression):
        if name not in exported:
            found.append(name)
            continue
        known |= exported[name]
        asked = re.findall(r"(\w+)\s*=~?", selectors)
        found += [f"{name}.{label}" for label in asked if label not in exported[name]]
    for group in re.findall(r"by \(([^)]*)\)", expression):
        found += [label.strip() for label in group.split(",") if label.strip() not in known]
    return found


def test_every_metric_and_label_is_exported(exported):
    assert len(EXPRESSIONS) > 15
    for expression in EXPRESSIONS:
        assert SELECTOR.search(expression), expression
        assert missing(expression, exported) == [], expression


def test_variables_are_there_and_ask_for_what_is_exported(exported):
    used = set(re.findall(r"\$\{?(\w+)\}?", json.dumps(DASHBOARD))) - {"__rate_interval", "__all"}
    assert used == set(VARIABLES)
    for name, variable in VARIABLES.items():
        if variable["type"] == "query":
            metric, label = re.fullmatch(
                r"label_values\((\w+), (\w+)\)", variable["query"]["query"]
            ).groups()
            assert label == name
            assert label in exported[metric]


def test_prometheus_asks_where_metrics_are_by_default():
    targets = {
        job["job_name"]: [target for each in job["static_configs"] for target in each["targets"]]
        for job in yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]
    }
    options = inspect.signature(metrics_command).parameters
    usual = f"{options['listen'].default}:{options['port'].default}"
    assert targets["switchgnn-switches"] == [usual]
    ports = [int(target.rpartition(":")[2]) for target in targets["switchgnn-workers"]]
    assert ports == list(range(ports[0], ports[0] + 4))
    assert f"--metrics {ports[0]}" in PAGE


PAGE = (DEPLOY.parent / "docs/monitoring.md").read_text()


def test_the_metrics_of_the_table_are_exported(exported):
    named = set(re.findall(r"`(switchgnn_\w+)", PAGE))
    known = {name.removesuffix("_bucket") for name in exported}
    assert len(named) > 15
    assert named <= known
