"""Errors that follow from the arguments alone come without PyTorch, whose import takes seconds."""

import json
import sys

import pytest

from tests.support.processes import run_program

PROGRAM = """
import contextlib, io, json, sys
for name in ("torch", "torch_geometric", "ogb"):
    sys.modules[name] = None    # importing it fails
from switchgnn.commands.main import main
from switchgnn.train import main as train

def said(words):
    program, *sys.argv[1:] = words
    with contextlib.redirect_stderr(io.StringIO()) as error:
        try:
            (train if program == "switchgnn.train" else main)()
        except SystemExit as end:
            code = end.code
    return code, error.getvalue()

print(json.dumps([said(words) for words in json.load(sys.stdin)]))
"""
TRAIN, ON = "switchgnn train --data karate", "switchgnn train --data"
SCAPY, SUMS_ALONE = "switchgnn run --hosts scapy", "--hosts scapy exchanges sums, one row"
CASES = {
    f"{SCAPY} --operation max": SUMS_ALONE,
    f"{SCAPY} --rows 2": SUMS_ALONE,
    f"{SCAPY} --strategy best --pools 2": SUMS_ALONE,
    f"{ON} karat": "No data set 'karat'; known: digits, karate, ",
    f"{ON} nothing.npz": "There is no file nothing.npz",
    f"{ON} x --edges a --labels b": "--edges, --node-features and --labels go together",
    f"{ON} x --edges a --labels b --node-features c": "There is no file a: ",
    f"{TRAIN} --model gnc": "No model 'gnc'; known: gcn, sage, gin, or FILE.py:NAME; did you mean",
    f"{TRAIN} --model nothing.py:Net": "nothing.py does not exist",
    f"{TRAIN} --workers 40": "40 workers are too many for graph karate, which has 34 vertices",
    f"{ON} four.txt --workers 2": "four.txt has no array features",
    f"{TRAIN} --edge-weights --ignore-weights": "Give --edge-weights or --ignore-weights, not both",
    f"{TRAIN} --assignment nothing.txt": "The assignment nothing.txt cannot be read",
    f"{TRAIN} --assignment two.txt": "The assignment must be 34 whole numbers",
    f"{TRAIN} --rows 8 --lanes 256": "Frames with 8 rows of 256 numbers are not possible",
    f"{TRAIN} --model four.txt:Net": "four.txt is not a Python file",
    f"{TRAIN} --pcap four.txt": "--pcap: cannot write four.txt: it is no folder",
    f"{TRAIN} --transport swich": "did you mean switch?",
    f"{TRAIN} --reduce switch --transport host": "--reduce switch is for --transport switch",
    f"{TRAIN} --adapt --transport switch-paper": "--transport switch-paper has one",
    f"{TRAIN} --adapt --workers 1": "one worker has none",
    f"{TRAIN} --adapt --bits 8": "with compression there is one",
    f"{TRAIN} --workers 3 --per-machine 2": "3 workers cannot be 2 on each machine",
    f"{TRAIN} --bits 8 --per-machine 2": "--bits 8 is not for several workers per machine",
    f"{TRAIN} --transport g3 --per-machine 2": "g3 is not for several workers per machine",
    f"{TRAIN} --sampling 0.5": "--sampling is not for all of these: take --transport",
    f"{TRAIN} --bits 8 --transport g3": "--bits 8 is not for --transport g3",
    f"{TRAIN} --bits 8 --transport host --sampling 0.5": "--bits 8 and --sampling do not go",
    f"{TRAIN} --cache 0.1 --dropout 0.5": "--cache and --dropout 0.5 do not go together",
    f"{TRAIN} --keep-by random": "--keep-by chooses among columns: add --keep",
    f"{TRAIN} --checkpoint a --transport host --transport g3": "is for one --transport",
    f"{TRAIN} --pcap p --transport local": "--transport local has none",
    f"{TRAIN} --strategy bset": "No preset 'bset'; known: auto, best, paper; did you mean best?",
    f"{TRAIN} --partition mets": "did you mean metis?",
    f"{TRAIN} --target bmv2": "simple_switch_grpc is not on the PATH",
    f"{TRAIN} --target tofino --bits 8": "adds whole rows of 32 bits: leave out --sampling",
    f"{TRAIN} --target tofino --transport switch --sampling 0.5": "leave out --sampling, --cache",
    f"{TRAIN} --target embedded --bmv2-log debug": "--bmv2-log is for BMv2 only",
    f"{TRAIN} --topology leaf-spine --leaves 9": "9 leaves",
    f"{TRAIN} --faults w9.loss=0.1": "w9",
    f"{TRAIN} --metrics 0": "choose one from",
    f"{TRAIN} --plots nowhere/plots": "there is no folder",
    f"{TRAIN} --config nothing.toml": "nothing.toml",
    "switchgnn launch nothing.py": "There is no program nothing.py",
    "switchgnn launch --faults w9.loss=0.1 FILE": "w9",
    "switchgnn launch --target bmv2 FILE": "simple_switch_grpc is not on the PATH",
    "switchgnn allreduce --bytes 5": "no whole number of 4 bytes",
    "switchgnn allreduce --bits 40": "give --bits as 48 or 32",
    "switchgnn allreduce --bytes 4EB": "Cannot read --bytes 4EB",
    "switchgnn allreduce --faults loss=2": "loss",
    "switchgnn.train nothing": "nothing holds no job",
    "switchgnn.train nothing --model gnc": "No model 'gnc'",
    "switchgnn.train nothing --metrics http": "Metrics cannot be served on 'http'",
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("early")
    (folder / "four.txt").write_text("0 1\n1 2\n2 3\n")
    (folder / "two.txt").write_text("0\n1\n")
    done = run_program(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps([words.replace("FILE", __file__).split() for words in CASES]),
        # No simple_switch_grpc, and lines that are not broken.
        env={"PATH": "/nowhere", "COLUMNS": "300", "PYTHONPATH": ":".join(sys.path)},
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(CASES, json.loads(done.stdout.splitlines()[-1]), strict=True))


@pytest.mark.parametrize("words", CASES)
def test_the_error_comes_without_pytorch(words, answers):
    code, said = answers[words]
    assert code == 2
    assert CASES[words] in said
