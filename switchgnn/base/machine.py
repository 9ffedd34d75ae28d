"""The machine's memory, numbers in words, how the program was installed, and starting modules."""

import importlib.metadata
import re
import resource
import sys
from collections.abc import Sequence
from pathlib import Path

import switchgnn
from switchgnn.base.errors import SwitchGNNError

_CLEAR = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")
_MACHINE = Path("/proc/meminfo")
_FORGET_PEAK = "5"
_KILO = 1024
_UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
_PLURALS = {"ex": "ices", "af": "aves", "ry": "ries", "ss": "sses"}
_NAME = "switchgnn"


class TooLargeError(SwitchGNNError):
    """A request needs more memory than is available."""


class PeakMemory:
    """The peak of resident memory since construction.

    Where the system cannot reset it, the peak is that of the whole process.
    """

    def __init__(self) -> None:
        self.forgot = True  # whether the system reset the peak
        try:
            _CLEAR.write_text(_FORGET_PEAK)
        except OSError:
            self.forgot = False
        self.before = _field(_STATUS, "VmRSS") or _process_peak()  # resident bytes at construction

    def peak(self) -> int:
        """Return the peak in bytes."""
        return (_field(_STATUS, "VmHWM") if self.forgot else None) or _process_peak()


def available_memory() -> int | None:
    """Return the bytes that programs can still allocate; None if unknown."""
    return _field(_MACHINE, "MemAvailable")


def require_memory(what: str, needed: int, remedy: str) -> None:
    """Raise TooLargeError unless `needed` bytes are available or the machine does not report it.

    `what` is the plural subject of the sentence, and `remedy` names what to lower.
    """
    room = available_memory()
    if room is not None and needed > room:
        raise TooLargeError(
            f"{what} take {size_text(needed)} of memory, and {size_text(room)} are free: {remedy}."
        )


class Amount(int):
    """A count that is formatted with its noun: `f"{Amount(2):leaf}"` is `2 leaves`."""

    def __format__(self, noun: str) -> str:
        head, of, rest = noun.partition(" of ")
        if self != 1:
            head = head[:-2] + _PLURALS.get(head[-2:], f"{head[-2:]}s")
        return f"{int(self):,} {head}{of}{rest}"


def against_bound(error: float, bound: float) -> str:
    """Return an error and its bound with enough digits to tell them apart."""
    digits = next((each for each in range(3, 17) if f"{error:.{each}g}" != f"{bound:.{each}g}"), 3)
    how = "exactly" if error == bound else "within" if error < bound else "NOT WITHIN"
    return f"{error:.{digits}g}, {how} the bound {bound:.{digits}g}"


def size_text(number: float) -> str:
    """Return bytes in words, as 21.3 kB or 1.20 MB."""
    if number >= 10**18:  # too much for a float
        return f"{int(number) // 10**9:,} GB"
    unit, size = size_unit(number)
    return f"{number / size:,.{1 if unit == 'kB' else 2}f} {unit}"


def size_unit(number: float) -> tuple[str, float]:
    """Return the unit in which that many bytes are read best, and its size."""
    return next((each for each in _UNITS if number >= each[1]), _UNITS[-1])


def _field(file: Path, field: str) -> int | None:
    try:
        found = re.search(rf"^{field}:\s*(\d+) kB", file.read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) * _KILO if found else None


def _process_peak() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * _KILO


def version_of(package: str) -> str | None:
    """Return the version of an installed package, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def checkout() -> Path | None:
    """Return the folder of an editable installation; None for a wheel."""
    root = Path(switchgnn.__file__).parent.parent
    return root if (root / "pyproject.toml").is_file() else None


def how_to_install(extra: str | None = None) -> str:
    """Return the command that installs the program's packages, or those of an extra."""
    brackets, folder = f"[{extra}]" if extra else "", checkout()
    if folder is None:
        return f"pip install '{_NAME}{brackets}'" if extra else f"pip install {_NAME}"
    if folder.resolve() == Path.cwd().resolve():
        return f"pip install -e '.{brackets}'" if extra else "pip install -e ."
    return f"pip install -e '{folder}{brackets}'"


# Removes the current folder, '' in sys.path, before anything is imported from it.
_START = (
    "import sys; sys.path[:] = filter(None, sys.path); del sys.argv[0]; "
    "import runpy; runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)
_OURS = (sys.executable, "-c", _START)
_USUAL = (sys.executable, "-m")


def python_program(module: str, *arguments: str) -> tuple[str, ...]:
    """Return the command that runs a module with arguments."""
    return (*_OURS, module, *arguments)


def module_of(command: Sequence[str]) -> list[str] | None:
    """Return the module that a command runs with its arguments; None for other programs."""
    for start in (_OURS, _USUAL):
        if tuple(command[: len(start)]) == start:
            return list(command[len(start) :])
    return None
