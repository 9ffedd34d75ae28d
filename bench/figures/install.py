"""The table entries per second that are installed in BMv2, compared with p4runtime-shell."""

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.errors import BenchError
from bench.line import Goal, ResultLine
from bench.machine import lacks_bmv2
from bench.measure import alternate, repeat
from bench.settings import Settings
from bench.testbeds.veth import VethStar
from bench.testbeds.workload import WORKERS, random_plan
from switchgnn.controller import (
    DesiredStates,
    P4RuntimeClient,
    Share,
    SwitchPlan,
    install_each,
    program_cookie,
    star_network,
)
from switchgnn.controller.controls.fanout import Fanout
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.controller.p4runtime.rows import INSERT, encode_rows
from switchgnn.p4src import load_program
from switchgnn.planner import Plan
from switchgnn.topologies import Target, Topology, socket_address

NAME = "install"
_UNIT = "entries/s"
_LEAST = 30_000
_RATIO = 10.0
# This gives about 40,000 fanout entries in ten requests.
_VERTICES, _NEIGHBOURS = 8192, 24
SHELL_PYTHON = Path(__file__).resolve().parents[2] / ".venv-shell/bin/python"
_SHELL_SCRIPT = Path(__file__).resolve().parents[1] / "loads/shell_inserts.py"
_SHELL_ENTRIES = 1000
_SHELL_SECONDS = 120
missing = lacks_bmv2


def run(settings: Settings) -> Iterator[ResultLine]:
    """Measure both clients; without p4runtime-shell only our own."""
    plan = random_plan(_VERTICES, _NEIGHBOURS)
    with TemporaryDirectory(prefix="bench-") as name:
        address = socket_address(Path(name))
        star = Topology(star_network(WORKERS).alone, Target.BMV2, (address,))
        with VethStar(star, Path(name)):
            yield _against_shell(settings, plan, address, Path(name))
            yield _verified(settings, plan, address)


def _against_shell(settings: Settings, plan: Plan, address: str, folder: Path) -> ResultLine:
    count = len(plan.switch.entry_block)
    ours = (f"{count:,} fanout entries", lambda: _insert(plan, address))
    what, goal = "fanout entries, not read back", Goal(least=_LEAST)
    if not SHELL_PYTHON.exists():
        samples = repeat(settings.pairs, *ours)
        note = "not compared: `make .venv-shell/ready` installs p4runtime-shell"
        return ResultLine(NAME, what, _UNIT, samples, goal=goal, note=note)
    _write_program(folder)
    shell = (f"p4runtime-shell, {_SHELL_ENTRIES:,}", lambda: _shell(address, folder))
    pair = alternate(settings.pairs, ours, shell)
    return ResultLine(NAME, what, _UNIT, *pair, goal=Goal(ratio=_RATIO, least=_LEAST))


def _insert(plan: Plan, address: str) -> float:
    program = load_program()
    with P4RuntimeClient(address) as client:
        client.set_pipeline(program, program_cookie(program))
        started = time.perf_counter()
        fanout = Fanout(Layout.from_text(program.p4info))
        rows = fanout.rows(SwitchPlan(plan.manifest, plan.switch))
        written = client.write_requests(encode_rows(INSERT, rows))
        return written / (time.perf_counter() - started)


def _verified(settings: Settings, plan: Plan, address: str) -> ResultLine:
    samples = repeat(settings.pairs, "install_each()", lambda: _install(plan, address))
    what = "all entries, read back and compared"
    return ResultLine(NAME, what, _UNIT, samples, goal=Goal(least=_LEAST))


def _install(plan: Plan, address: str) -> float:
    program = load_program()
    with P4RuntimeClient(address) as client:
        # Loading the program again removes the entries and with them the session.
        client.set_pipeline(program, program_cookie(program))
        share = Share(SwitchPlan(plan.manifest, plan.switch), star_network(WORKERS), client)
        report = install_each([share], DesiredStates(program))
    switch = report.switches[0]
    return sum(switch.entries.values()) / switch.seconds


def _write_program(folder: Path) -> None:
    program = load_program()
    (folder / "program.json").write_bytes(program.json)
    (folder / "p4info.txtpb").write_text(program.p4info)


def _shell(address: str, folder: Path) -> float:
    result = subprocess.run(
        [str(SHELL_PYTHON), str(_SHELL_SCRIPT), address, str(folder), str(_SHELL_ENTRIES)],
        capture_output=True,
        text=True,
        timeout=_SHELL_SECONDS,
        check=False,
    )
    if result.returncode:
        raise BenchError(f"p4runtime-shell failed: {result.stderr.strip()[-300:]}")
    return float(json.loads(result.stdout.splitlines()[-1])["entries_per_second"])
