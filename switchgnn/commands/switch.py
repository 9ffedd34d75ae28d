"""`switchgnn switch`: the embedded switch as a service."""

import signal
from dataclasses import dataclass, replace
from pathlib import Path

import typer
from finsy.proto import p4i, p4r
from google.protobuf import text_format

from switchgnn.base import network_file
from switchgnn.base.errors import SwitchGNNError
from switchgnn.base.files import read_regular, read_regular_text
from switchgnn.base.network import NetworkError
from switchgnn.base.options import NETWORK, PROGRAM, with_groups
from switchgnn.controller.p4runtime.client import program_cookie
from switchgnn.controller.p4runtime.layout import parse_p4info
from switchgnn.p4src import load_program, load_strawman, load_tofino
from switchgnn.softswitch.daemon import SwitchOptions, run_switch

PRODUCT, NONE = "switchgnn", "none"
_PROGRAMS = {PRODUCT: load_program, "strawman": load_strawman, "tofino": load_tofino}
_P4INFO_SUFFIX = ".p4info.txtpb"
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class ProgramError(SwitchGNNError):
    """The P4 program that a switch is to begin with is not there, or is something else."""


def as_described(options: SwitchOptions, path: Path, name: str | None) -> SwitchOptions:
    """Return the options with the address, device id and ports of a switch in a network file."""
    if options.grpc is not None or options.port:
        raise NetworkError("--network says where the switch is: leave out --grpc and --port.")
    switch = _chosen(network_file.read_network(path), path, name)
    if not switch.target.is_embedded:
        raise NetworkError(
            f"{path}: switch {switch.name} is a {switch.target.value}, which this command does "
            "not run."
        )
    if not switch.ports:
        raise NetworkError(
            f"{path}: switch {switch.name} has no ports; write what is at each, as "
            'ports = { "1" = "eth:enp1s0" }.'
        )
    ports = [f"{number}={what}" for number, what in switch.ports.items()]
    return replace(options, grpc=switch.grpc, device_id=switch.device_id, port=ports)


def _chosen(
    network: network_file.DescribedNetwork, path: Path, name: str | None
) -> network_file.DescribedSwitch:
    by_name = {switch.name: switch for switch in network.switches}
    if name is None and len(by_name) == 1:
        return network.switches[0]
    found = by_name.get(name or "")
    if found is None:
        which = f"has no switch {name}" if name else "has several switches"
        raise NetworkError(f"{path} {which}: --name is one of {', '.join(by_name)}.")
    return found


def find_program(name: str, p4info: Path | None) -> p4r.ForwardingPipelineConfig | None:
    """Return the program of a name or of p4c's JSON file; None for `none`."""
    if name in (*_PROGRAMS, NONE):
        if p4info is not None:
            raise ProgramError(f"--p4info goes with a file of one's own, and not with {name}.")
        if name == NONE:
            return None
        program = _PROGRAMS[name]()
        return p4r.ForwardingPipelineConfig(
            p4info=parse_p4info(program.p4info),
            p4_device_config=program.json,
            # With it a controller sees that this is the program that it knows.
            cookie=p4r.ForwardingPipelineConfig.Cookie(cookie=program_cookie(program)),
        )
    return _of_files(Path(name), p4info)


def _of_files(document: Path, p4info: Path | None) -> p4r.ForwardingPipelineConfig:
    described = p4info or document.with_name(f"{document.stem}{_P4INFO_SUFFIX}")
    try:
        config = read_regular(document)
        info = text_format.Parse(read_regular_text(described, "utf-8"), p4i.P4Info())
    except OSError as error:
        missing = error.filename or document
        raise ProgramError(
            f"The P4 program {document} cannot be read: {missing}: {error.strerror or error}. Give "
            f"the JSON that p4c makes for BMv2, with its P4Info in {described.name} beside it or "
            f"with --p4info; or {', '.join(_PROGRAMS)} or {NONE}."
        ) from None
    except (UnicodeDecodeError, text_format.ParseError):
        raise ProgramError(
            f"{described} is no P4Info in protobuf's text format: compile the program with p4c's "
            "option --p4runtime-files."
        ) from None
    return p4r.ForwardingPipelineConfig(p4info=info, p4_device_config=config)


@dataclass(frozen=True)
class ServiceOptions(SwitchOptions):
    """The options of `switchgnn switch`."""

    network: Path | None = NETWORK.option(
        "FILE", "Read --grpc, --port and --device-id from this network file."
    )
    name: str | None = NETWORK.option("NAME", "Be this switch of that file, if it has several.")
    program: str = PROGRAM.option(
        "NAME|FILE",
        f"Begin with this P4 program: {', '.join(_PROGRAMS)}, none until a controller brings one, "
        "or the JSON that p4c makes for BMv2.",
        default=PRODUCT,
    )
    p4info: Path | None = PROGRAM.option(
        "FILE",
        "Read the P4Info (text) of a program in a file from this file.",
        shown="NAME.p4info.txtpb beside it",
    )


@app.command(epilog="Example: switchgnn switch --grpc unix:switch.sock --port 1=eth:enp1s0")
@with_groups
def switch(asked: ServiceOptions) -> None:
    """Run the embedded switch as a service.

    It runs until SIGTERM or Ctrl-C. Controllers reach it over P4Runtime.
    After a restart it has no plan until a controller, such as
    `switchgnn controller watch`, installs one.
    """
    options: SwitchOptions = asked
    if asked.network is not None:
        options = as_described(asked, asked.network, asked.name)
    elif asked.name is not None:
        raise NetworkError("--name is that of a switch in a network file: add --network.")
    program = find_program(asked.program, asked.p4info)
    if run_switch(options, program) is signal.SIGINT:
        raise KeyboardInterrupt
