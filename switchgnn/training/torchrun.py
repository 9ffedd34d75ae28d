"""`python -m switchgnn.train`: the built-in trainer as a program that torchrun starts."""

import json
import os
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.interruptible import interruptible
from switchgnn.base.metrics import parse_address
from switchgnn.base.network_file import read_network
from switchgnn.base.options import with_groups
from switchgnn.host.metrics import metrics_address, serving_metrics
from switchgnn.host.registry import SWITCH
from switchgnn.training.base.errors import JobError, ModelError
from switchgnn.training.base.options import TrainingOptions, check_device
from switchgnn.training.job import read_job

if TYPE_CHECKING:
    from switchgnn.training.trainer import EpochReport

_FAILED, _INTERRUPTED = 2, 130


def train(
    job: Annotated[Path, typer.Argument(help="The folder of the job.", show_default=False)],
    *,
    network: Annotated[Path, typer.Option(help="The network file.")] = Path("network.toml"),
    asked: TrainingOptions,
    seed: Annotated[int, typer.Option(min=0, help="Draw weights and dropout from this seed.")] = 0,
    faults: Annotated[str, typer.Option(help="Add up gradients as in `switchgnn train`.")] = "",
    metrics: Annotated[
        str | None,
        typer.Option(
            metavar="[ADDRESS:]PORT",
            show_default="as the network file says",
            help="Serve metrics of this worker to Prometheus there, or on loopback; processes of "
            "one machine on PORT + LOCAL_RANK.",
        ),
    ] = None,
    transport: Annotated[
        str, typer.Option(help="Exchange rows so: switch, or a transport that the job has.")
    ] = SWITCH.name,
    as_json: Annotated[bool, typer.Option("--json", help="Worker 0 prints one object.")] = False,
) -> None:
    """Train as a worker of a job; torchrun gives its number."""
    asked.check_dropout()
    rank = int(os.environ.get("LOCAL_RANK", "0"))
    address = "" if metrics is None else metrics_address(parse_address(metrics), rank)
    shape = asked.shape()
    asked.compression.check()
    if not read_job(job).classes:
        raise JobError(
            f"The job {job} has no labels to train on: write it with y and masks, or train with "
            "your own script."
        )
    read_network(network)
    # These import PyTorch, which takes seconds.
    from switchgnn.training.joining import join_job  # noqa: PLC0415
    from switchgnn.training.layers.check import check_own_model  # noqa: PLC0415
    from switchgnn.training.trainer import Training, train_as_worker  # noqa: PLC0415

    check_device(asked.device)
    options, compression = asked.options(shape, seed), asked.compression
    training = Training(shape, options, device=asked.device, compression=compression)
    where: dict[str, Any] = {"network": network, "transport": transport}
    with join_job(
        job, **where, faults=faults, seed=seed, compression=compression.of_rows(seed)
    ) as joined:
        worker, last, part = joined.partition.worker, None, joined.partition
        weighted = part.edge_weights is not None
        shape.check_weights(weighted=weighted)
        if part.workers > 1 and not asked.unchecked:
            check_own_model(
                *(shape, part.features.shape[1], part.classes),
                undirected=part.undirected,
                weighted=weighted,
                warns=worker == 0,
            )

        def tell(report: "EpochReport") -> None:
            nonlocal last
            last = asdict(report)
            if worker == 0 and not as_json:
                typer.echo(_line(report, asked.epochs))

        train_as_worker(
            *(part, joined.transport, training, tell),
            first=joined.first,
            machine=joined.machine,
            binned=joined.binned,
            seen=partial(serving_metrics, address or joined.metrics),
        )
    if as_json and worker == 0:
        facts = {"data": joined.job.data, "workers": joined.job.workers, "session": joined.session}
        typer.echo(json.dumps({"worker": worker, **facts, "last": last}))


def main() -> None:
    """Run the command; errors are one sentence and exit code 2."""
    application = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    application.command()(with_groups(train))
    try:
        with interruptible():
            application()
    except SwitchGNNError as error:
        if isinstance(error, ModelError) and error.details:
            typer.echo(error.details, err=True)
        typer.echo(f"Error: {error}", err=True)
        sys.exit(_FAILED)
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


def _line(report: "EpochReport", epochs: int) -> str:
    text = (
        f"epoch {report.epoch} of {epochs}: loss {report.loss:.5f}, {report.seconds * 1e3:.0f} ms"
    )
    if report.accuracy is None or report.accuracy.test is None:
        return text
    return f"{text}, test {report.accuracy.test:.1%}"
