"""Both versions of each script give the same losses and predictions, and differ in few lines."""

import difflib
import os
import re
import shutil
import signal
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("torch_geometric", reason="PyTorch Geometric is not installed")

from tests.support.markers import full  # noqa: E402
from tests.support.speed import seconds_here  # noqa: E402
from tests.support.waiting import wait_until  # noqa: E402
from tests.torch.machines import Machine  # noqa: E402

HERE = Path(__file__).parents[2] / "examples"
BLOCK = re.compile(r"^```bash\ncd examples/(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMANDS = {
    name: text.splitlines() for name, text in BLOCK.findall((HERE / "README.md").read_text())
}
SCRIPT = re.compile(r'^```python title="train.py"\n(.*?)^```', re.MULTILINE | re.DOTALL)
# Not whole lines: torchrun's processes write a text and its end of line apart, so lines can join.
LOSS = re.compile(r"loss (\d+\.\d{4})")
MOST_CHANGED = 9
EPOCHS = 10
RESULT, NETWORK = "result.pt", "network.toml"


@contextmanager
def serving(machine, words, number=signal.SIGTERM):
    """Switches, until they are told to end; then their network's file is gone."""
    network = machine.folder / NETWORK
    with machine.child(words) as child:
        wait_until(network.exists, "the switches serve")
        yield
        os.kill(child.pid, number)
        assert child.wait(seconds_here(30)) == 0
    assert not network.exists()


def test_every_example_has_its_commands():
    assert set(COMMANDS) == {path.parent.name for path in HERE.glob("*/together.py")}
    assert len(COMMANDS) == 5


@pytest.mark.parametrize("name", COMMANDS)
def test_few_lines_differ(name):
    alone, together = (
        [line.strip() for line in text.split('"""')[2].splitlines() if line.strip()]
        for text in ((HERE / name / file).read_text() for file in ("alone.py", "together.py"))
    )
    changed = [line for line in difflib.ndiff(alone, together) if line.startswith("+ ")]
    assert 0 < len(changed) <= MOST_CHANGED, changed


@pytest.mark.parametrize(
    "name",
    [name if name in ("ddp", "links") else pytest.param(name, marks=full) for name in COMMANDS],
)
def test_over_switches_as_in_one_process(name, tmp_path):
    if name == "dgl_loop" and find_spec("dgl") is None:
        pytest.skip("DGL is not installed")
    folder = tmp_path / name
    shutil.copytree(HERE / name, folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(HERE / "switches.py", tmp_path)
    alone, job, switches, together = (line.partition(" #")[0] for line in COMMANDS[name])
    machine = Machine(0, folder)
    machine.run(words_of(alone))
    expected = torch.load(folder / RESULT)
    (folder / RESULT).unlink()
    machine.run(words_of(job))
    with serving(machine, words_of(switches)):
        machine.run(words_of(together))
    found = torch.load(folder / RESULT)
    assert len(expected["losses"]) == EPOCHS
    assert expected["losses"][-1] < 0.9 * expected["losses"][0]
    assert found["losses"] == pytest.approx(expected["losses"], abs=2e-5)
    assert found.get("auc") == pytest.approx(expected.get("auc"), abs=5e-4)
    assert ("auc" in found) == (name == "links")
    assert torch.allclose(found["predictions"], expected["predictions"], atol=1e-4)


def test_the_script_of_the_readme_trains_as_one_process_does(tmp_path):
    folder = tmp_path / "own_loop"
    shutil.copytree(HERE / "own_loop", folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(HERE / "switches.py", tmp_path)
    (program,) = SCRIPT.findall((HERE.parent / "README.md").read_text())
    (folder / "train.py").write_text(program)
    # The same loop without the lines of workers.
    (folder / "one.py").write_text(
        re.sub(r"with sg.join.*", "if True:", program)
        .replace("import switchgnn.torch as sg", "from digits import digits")
        .replace("worker.data", "digits()")
        .replace("worker.wrap", "")
        .replace("worker.classes", "10")
        .replace(
            'worker.mean(F.cross_entropy(out[train], data.y[train], reduction="sum"))',
            "F.cross_entropy(out[train], data.y[train])",
        )
        .replace("loss = worker.reduce(model, loss)", "")
    )
    machine = Machine(0, folder)
    (expected,) = LOSS.findall(machine.run([sys.executable, "one.py"]))
    _, job, switches, together = (line.partition(" #")[0] for line in COMMANDS["own_loop"])
    machine.run(words_of(job))
    with serving(machine, words_of(switches)):
        said = machine.run(words_of(together.replace("together.py", "train.py")))
    said += machine.run(words_of("switchgnn launch --fabric loopback --workers 3 train.py"))
    assert float(expected) < 0.5
    found = LOSS.findall(said)
    assert len(found) == 6
    assert [float(loss) for loss in found] == pytest.approx([float(expected)] * 6, abs=2e-4)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_switches_in_the_background_end_with_a_signal(number, tmp_path):
    shutil.copy(HERE / "switches.py", tmp_path)
    # As a shell starts a program with `&`.
    ignoring = ("sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "switches.py")
    with serving(Machine(0, tmp_path), [*ignoring, "--workers", "2"], number):
        pass


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--workers", "0"], "invalid choice"),
        (["--workers", "2", "--leaves", "3"], "3 leaves"),
        (["--out", "switches.py"], "switches.py exists already"),
    ],
)
def test_switches_that_cannot_be_are_one_sentence(options, words, tmp_path):
    shutil.copy(HERE / "switches.py", tmp_path)
    code, _, said = Machine(0, tmp_path).try_to_run([sys.executable, "switches.py", *options])
    assert code == 2
    assert words in said
    assert "Traceback" not in said
    assert (tmp_path / "switches.py").read_text() == (HERE / "switches.py").read_text()


def words_of(command):
    program, *words = command.split()
    folder = Path(sys.executable).parent
    return [sys.executable if program == "python" else folder / program, *words]
