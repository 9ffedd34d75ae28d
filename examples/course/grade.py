"""Grade the exercises of docs/course.md: `python examples/course/grade.py -h`."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import typer

from switchgnn.controller import P4RuntimeClient, load_plan, star_network
from switchgnn.controller.controls.access import Source
from switchgnn.controller.show import show_entries

# How much later a sum must arrive in another order, as a share of its block's features.
LATER = 0.03
app = typer.Typer(help=__doc__, add_completion=False, pretty_exceptions_enable=False)


@app.command()
def order(before: Path, after: Path) -> None:
    """Check that sums arrive later in AFTER than in BEFORE, and with them the barriers."""
    shares = [share_sent(packets(folder)) for folder in (before, after)]
    for folder, share in zip((before, after), shares, strict=True):
        typer.echo(
            f"{folder}: when a sum arrives, {share:.0%} of its block's features have been sent."
        )
    verdict(shares[1] - shares[0] > LATER, "the sums arrive later", "the sums arrive as early")


def packets(folder: Path) -> list[dict[str, object]]:
    """Return the packets of a capture in order."""
    command = [sys.executable, "-m", "switchgnn", "capture", str(folder), "--json"]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(line) for line in lines.splitlines()]


def share_sent(captured: list[dict[str, object]]) -> float:
    """Return the mean share of a block's features that precede a sum of it."""
    unit = ("round", "block_id", "fragment")
    features = Counter(tuple(map(each.get, unit)) for each in captured if each["kind"] == "feature")
    sent, shares = Counter[tuple[object, ...]](), []
    for packet in captured:
        block = tuple(map(packet.get, unit))
        sent[block] += packet["kind"] == "feature"
        if packet["kind"] == "sum":
            shares.append(sent[block] / features[block])
    return sum(shares) / len(shares)


@app.command()
def table(plan: Path, address: str = "127.0.0.1:9559") -> None:
    """Compare the entries of `source` in a switch with those of a plan."""
    part = load_plan(plan)
    with P4RuntimeClient(address, primary=False) as client:
        source = Source(client.get_layout())
        wanted = source.records(source.rows(part, star_network(part.manifest.workers)))
        found = show_entries(client, "source")
    missing = [entry for entry in wanted if entry not in found]
    for entry in missing:
        typer.echo("missing: " + ", ".join(f"{name} {value}" for name, value in entry.items()))
    wrong = [entry for entry in found if entry not in wanted]
    verdict(
        not missing and not wrong,
        "the table is that of the plan",
        f"{len(missing)} missing, {len(wrong)} wrong",
    )


@app.command()
def dedup(results: Path, test: str) -> None:
    """Check that TEST, such as dedup.TagsReachTheEnd, is one of the packet tests that failed.

    RESULTS: a file of pytest's option --junitxml.
    """
    cases = list(ElementTree.parse(results).iter("testcase"))  # noqa: S314  # the student's own
    names = [each.attrib["name"] for each in cases if each.find("failure") is not None]
    failed = {name.rpartition("-")[2].rstrip("]") for name in names}
    typer.echo(f"{len(cases)} tests, {len(failed)} failed.")
    found = test in failed and test.startswith("dedup.") and len(failed) < len(cases)
    verdict(found, f"{test} found it", f"{test} did not fail, or is not a test of dedup.p4")


def verdict(right: bool, yes: str, no: str) -> None:
    """Print the grade and end, with code 1 for a failed exercise."""
    typer.echo(f"Passed: {yes}." if right else f"Not yet: {no}.")
    raise typer.Exit(not right)


if __name__ == "__main__":
    app()
