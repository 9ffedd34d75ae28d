"""`python -m tests.soak`, from the checkout: `switchgnn run` over random graphs with random faults.

Each run draws its workers, graph, slots, features and faults. At the end, or at Ctrl-C, a summary
has the commands that repeat failed runs: the draws are the same then, but not the order of packets
from different workers. Other options go to `switchgnn run`.
"""

import argparse
import json
import random
import shlex
import signal
import subprocess
import sys
import time

from switchgnn.base.interruptible import Interruption, end_like_interrupted
from switchgnn.host.links.faults import DIRECTIONS
from switchgnn.topologies import cable_name

_WORKERS = (2, 5)
_SLOTS = (8, 16, 64, 256, 1024)
_WIDTHS = (1, 31, 32, 33, 64, 100)
_RATES = {"loss": 0.10, "duplicate": 0.05, "reorder": 0.05, "corrupt": 0.01}
# A direction sometimes lacks a kind of fault: some mistakes only show without it.
_NO_FAULT = 0.25
_BAD_LINK, _BAD_LINK_LOSS = 0.25, (0.1, 0.2)
_MOST_FAILURES = 5


def draw_words(seed, number, leaves_and_spines=None):
    """Return the words of one `switchgnn run`; the same seed and number give the same ones."""
    source = random.Random(f"{seed}/{number}")
    least = max(_WORKERS[0], leaves_and_spines[0] if leaves_and_spines else 0)
    workers = source.randint(least, least + _WORKERS[1] - _WORKERS[0])
    options = {
        "graph": _graph(source),
        "workers": workers,
        "features": source.choice((source.choice(_WIDTHS), source.randint(1, 128))),
        "rounds": source.randint(1, 3),
        "slots": source.choice(_SLOTS),
        "send": source.choice(("multicast", "cover")),
        "seed": source.randrange(2**16),
        "faults": ",".join(_faults(source, workers, leaves_and_spines)),
    }
    if leaves_and_spines:
        leaves, spines = leaves_and_spines
        options |= {"topology": "leaf-spine", "leaves": leaves, "spines": spines}
    return [word for name, value in options.items() for word in (f"--{name}", str(value))]


def _graph(source):
    vertices = source.randint(8, 300)
    edges = source.randint(vertices // 2, min(vertices * (vertices - 1) // 2, 6 * vertices))
    made_up = f"random:{vertices}:{edges}:{source.randrange(2**16)}"
    return source.choice(("karate", "digits", made_up, made_up))


def _faults(source, workers, leaves_and_spines):
    for direction in DIRECTIONS:
        for kind, most in _RATES.items():
            if source.random() >= _NO_FAULT:
                yield f"{direction}.{kind}={source.uniform(0, most):.4f}"
    bad = [f"w{source.randrange(workers)}"]
    if leaves_and_spines:
        bad.append(cable_name(*map(source.randrange, leaves_and_spines)))
    for link in bad:
        if source.random() < _BAD_LINK:
            yield f"{link}.{source.choice(DIRECTIONS)}.loss={source.uniform(*_BAD_LINK_LOSS):.4f}"
    yield f"seed={source.randrange(2**16)}"


def _run(words):
    """Run once; return None if all sums are exact, or else why not."""
    command = [sys.executable, "-m", "switchgnn", "run", "--json", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    # In its own session it gets one signal from here, whatever a terminal sends.
    options = {"start_new_session": True, **pipes}
    with Interruption() as ending, subprocess.Popen(command, **options) as process:
        try:
            ending.at_once()
            if ending.came:
                raise KeyboardInterrupt
            out, err = process.communicate()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            process.communicate()
            raise
    if process.returncode == 0:
        return None
    if out:
        return f"{json.loads(out)['wrong_sums']:,} wrong sums"
    return (err.strip() or f"it ended with code {process.returncode}").splitlines()[-1]


def _say(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(words=None):
    """Run until the time is over, Ctrl-C comes, or too much has failed; return the exit code."""
    parser = argparse.ArgumentParser("python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="begin no run after this time")
    parser.add_argument("--seed", type=int, help="all draws follow from it")
    parser.add_argument("--leaves", type=int)
    parser.add_argument("--spines", type=int, default=2)
    asked, more = parser.parse_known_args(words)
    shape = (asked.leaves, asked.spines) if asked.leaves else None
    seed = random.SystemRandom().randrange(2**32) if asked.seed is None else asked.seed
    end_like_interrupted()
    failures, runs, start = [], 0, time.monotonic()
    try:
        while runs == 0 or (
            time.monotonic() - start < 60 * asked.minutes and len(failures) < _MOST_FAILURES
        ):
            drawn = [*draw_words(seed, runs, shape), *more]
            _say(f"run {runs}: {shlex.join(drawn)}")
            failed = _run(drawn)
            runs += 1
            _say("exact" if failed is None else f"FAILED: {failed}")
            if failed is not None:
                failures.append(f"{failed}\n  repeat it: switchgnn run {shlex.join(drawn)}")
    except KeyboardInterrupt:
        _say("interrupted")
    _say("\n".join([f"Seed {seed}: {runs} runs, {len(failures)} of which failed.", *failures]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
