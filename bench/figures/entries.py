"""The table entries per second that the embedded switch takes and gives, and what each takes."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bench.errors import BenchError
from bench.line import Goal, ResultLine
from bench.machine import lacks_compiler
from bench.measure import Samples
from bench.settings import Settings
from switchgnn.base.machine import python_program
from switchgnn.controller import P4RuntimeClient, program_cookie
from switchgnn.controller.controls.fanout import Fanout
from switchgnn.controller.p4runtime.layout import Layout
from switchgnn.controller.p4runtime.rows import INSERT, Rows, Value, encode_rows, make_rows
from switchgnn.p4src import Program, load_program

NAME = "entries"
# A plan of the paper's size has as many; the others are for machines with less memory or time.
_FULL, _USUAL, _QUICK = 13_000_000, 2_000_000, 500_000
_RATE, _BYTES = 500_000, 100
_TIMES = 3
_SEED = 1
_ROOM = 1 << 24  # entries of the table, which has less as it is compiled
missing = lacks_compiler


@dataclass(frozen=True)
class _Measured:
    written: float  # entries/s
    read: float  # entries/s
    size: float  # bytes of an entry


def run(settings: Settings) -> Iterator[ResultLine]:
    """Measure writing, reading and memory."""
    count = _FULL if settings.full else _QUICK if settings.pairs < _TIMES else _USUAL
    program = _roomy(load_program())
    rows = _synthetic(Layout.from_text(program.p4info), count)
    measured = [_measure(program, rows) for _ in range(_TIMES if count < _FULL else 1)]
    label = f"{count:,} fanout entries"

    def samples(name: str) -> Samples:
        return Samples(label, tuple(getattr(each, name) for each in measured))

    yield ResultLine(NAME, "written", "entries/s", samples("written"), goal=Goal(least=_RATE))
    yield ResultLine(NAME, "memory", "bytes/entry", samples("size"), goal=Goal(most=_BYTES))
    yield ResultLine(NAME, "read back and compared", "entries/s", samples("read"))


def _roomy(program: Program) -> Program:
    """Return the program with a larger fanout table; a P4Info says how many entries there are."""
    size = Layout.from_text(program.p4info).table("fanout").size
    return replace(program, p4info=program.p4info.replace(f"size: {size}\n", f"size: {_ROOM}\n"))


def _synthetic(layout: Layout, count: int) -> Rows:
    """Return entries with distinct keys in no order, and random slots."""
    rng, table = np.random.default_rng(_SEED), layout.table("fanout")
    number = np.arange(count)
    values: dict[str, Value] = {
        field.name: rng.integers(0, 1 << field.bits, count, np.uint32)
        for field in table.action(Fanout.action).params
    }
    values |= {"block_id": number >> 14, "src_id": rng.permutation(count), "hop": number & 3}
    return make_rows(table, Fanout.action, values, count)


def _measure(program: Program, rows: Rows) -> _Measured:
    with (
        TemporaryDirectory(prefix="bench-") as folder,
        _switch(Path(folder)) as (address, process),
        P4RuntimeClient(address) as client,
    ):
        client.set_pipeline(program, program_cookie(program))
        client.write_requests(encode_rows(INSERT, rows.select(slice(0, 1))))
        before, started = _resident(process), time.perf_counter()
        client.write_requests(encode_rows(INSERT, rows.select(slice(1, None))))
        seconds, size = time.perf_counter() - started, _resident(process) - before
        started = time.perf_counter()
        found = client.read_rows(rows.table)
        read = len(rows) / (time.perf_counter() - started)
    if not np.array_equal(found.data, rows.data[np.argsort(rows.keys, kind="stable")]):
        raise BenchError("The switch has other entries than were written.")
    return _Measured(len(rows) / seconds, read, size / len(rows))


@contextmanager
def _switch(folder: Path) -> Iterator[tuple[str, int]]:
    """Run a switch without ports; yield its address and its process."""
    address = f"unix:{folder / 'switch'}"
    command = python_program("switchgnn.softswitch", "--grpc", address, "--backend", "native")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            yield address, process.pid
        finally:
            process.terminate()


def _resident(process: int) -> int:
    """Return the bytes of memory that a process has."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise BenchError(f"Linux does not say how much memory process {process} has.")
