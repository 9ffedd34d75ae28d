# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
"""The options of `python -m switchgnn.train`."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from switchgnn.errors import SwitchGNNError
from switchgnn.train.run import JobTask, train_job
from switchgnn.training.device import check_device
from switchgnn.training.device_name import DeviceName
from switchgnn.training.errors import ModelError
from switchgnn.training.layers.models import ModelOptions, model_name
from switchgnn.training.trainer import EpochReport, TrainOptions
from switchgnn.training.worker import Training

_FAILED, _INTERRUPTED = 2, 130


def train(
    job: Annotated[Path, typer.Argument(help="Folder of the job.", show_default=False)],
    *,
    network: Annotated[Path, typer.Option(help="The network file.")] = Path("network.toml"),
    model: Annotated[str, typer.Option(help="gcn, sage, gin, or your own: FILE.py:NAME.")] = "gcn",
    layers: Annotated[int, typer.Option(min=1, help="Number of layers.")] = 2,
    hidden: Annotated[int, typer.Option(min=1, help="Hidden units.")] = 16,
    dropout: Annotated[
        float, typer.Option(min=0.0, max=0.99, help="Share of units that are dropped.")
    ] = 0.5,
    lr: Annotated[float, typer.Option(min=0.0, help="Learning rate of Adam.")] = 0.01,
    weight_decay: Annotated[float, typer.Option(min=0.0, help="Of Adam.")] = 5e-4,
    epochs: Annotated[int, typer.Option(min=1, help="How many.")] = 100,
    evaluate_every: Annotated[int, typer.Option(min=1, help="Epochs.")] = 10,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Save there after each evaluation, and go on from there.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of weights and dropout.")] = 0,
    device: Annotated[
        DeviceName, typer.Option(help="Where to compute; cuda: GPU number LOCAL_RANK.")
    ] = DeviceName.CPU,
    faults: Annotated[str, typer.Option(help="As `switchgnn train` takes it.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Worker 0 prints one object.")] = False,
) -> None:
    """Train as the worker of a job whose number torchrun says."""

    def tell(worker: int, report: EpochReport) -> None:
        if worker == 0 and not as_json:
            typer.echo(_line(report, epochs))

    check_device(device)
    training = Training(
        model=ModelOptions(model_name(model), layers=layers, hidden=hidden, dropout=dropout),
        options=TrainOptions(
            epochs=epochs,
            learning_rate=lr,
            weight_decay=weight_decay,
            input_dropout=dropout,
            seed=seed,
            evaluate_every=evaluate_every,
            checkpoint=checkpoint,
        ),
        device=device,
    )
    told = train_job(JobTask(job, network, training, faults), tell)
    if as_json and told["worker"] == 0:
        typer.echo(json.dumps(told))


def main() -> None:
    """Run it; what goes wrong is a sentence and exit code 2."""
    application = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    application.command()(train)
    try:
        application()
    except SwitchGNNError as error:
        if isinstance(error, ModelError) and error.details:
            typer.echo(error.details, err=True)
        typer.echo(f"Error: {error}", err=True)
        sys.exit(_FAILED)
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


def _line(report: EpochReport, epochs: int) -> str:
    text = (
        f"epoch {report.epoch} of {epochs}: loss {report.loss:.5f}, {report.seconds * 1e3:.0f} ms"
    )
    if report.accuracy is None or report.accuracy.test is None:
        return text
    return f"{text}, test {report.accuracy.test:.1%}"
