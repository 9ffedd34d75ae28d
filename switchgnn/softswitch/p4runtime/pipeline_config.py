"""The switch as the P4Runtime service sees it, and the configurations of its pipeline."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from finsy.proto import p4r
from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from switchgnn.softswitch.base import schema as p4
from switchgnn.softswitch.base.errors import MalformedProgramError, RequestError, SoftSwitchError
from switchgnn.softswitch.base.state import ProgramState
from switchgnn.softswitch.lowering.loader import GivenProgram
from switchgnn.softswitch.native.state import NativeBatches, NativeState

Result = TypeVar("Result")
_Set = p4r.SetForwardingPipelineConfigRequest
_Get = p4r.GetForwardingPipelineConfigRequest
# Returns the program of a document; a cache may serve repeated installs.
Give = Callable[[bytes], GivenProgram]
# https://github.com/p4lang/PI/blob/main/proto/p4/tmp/p4config.proto
_DEVICE_DATA = 3


class Device(Protocol):
    """A switch on which programs are installed."""

    def call(self, function: Callable[[], Result]) -> Result:
        """Run a function between two packets and return its result."""

    def prepare(self, given: GivenProgram) -> "PreparedProgram":
        """Make all that a program needs to run; raise SoftSwitchError if it cannot run."""

    def inject(self, port: int, frame: bytes) -> None:
        """Process a frame as if it had arrived at a port."""


@dataclass(frozen=True)
class PreparedProgram:
    """A program's fresh state, and the function that replaces the running program by it."""

    state: ProgramState
    install: Callable[[], None]


@dataclass
class InstalledPipeline:
    """A verified program, which ``install`` installs; ``batches`` needs native code.

    ``replication`` has multicast groups and clone sessions by the name of their field and id.
    """

    config: p4r.ForwardingPipelineConfig
    schema: p4.Schema
    state: ProgramState
    batches: NativeBatches | None
    install: Callable[[], None]
    replication: dict[tuple[str, int], p4r.PacketReplicationEngineEntry] = field(
        default_factory=dict
    )


class PipelineConfigs:
    """The configurations that controllers set; ``current`` is the one in use, or None."""

    def __init__(self, device: Device, give: Give = GivenProgram) -> None:
        self._device = device
        self._give = give
        self._lock = threading.Lock()
        self.current: InstalledPipeline | None = None

    def installed(self) -> InstalledPipeline:
        """Return the configuration in use."""
        if self.current is None:
            raise p4.precondition("No program is installed: set a forwarding pipeline first.")
        return self.current

    def set(self, request: p4r.SetForwardingPipelineConfigRequest) -> None:
        """Verify a configuration, and install it if the request's action is to commit it."""
        if request.action not in {_Set.VERIFY, _Set.VERIFY_AND_COMMIT}:
            raise p4.unimplemented("Only VERIFY and VERIFY_AND_COMMIT are supported.")
        with self._lock:
            pipeline = self._verify(request.config)
            if request.action == _Set.VERIFY_AND_COMMIT:
                pipeline.install()
                self.current = pipeline

    def get(self, response_type: int) -> p4r.ForwardingPipelineConfig:
        """Return the parts of the installed configuration selected by a response type."""
        config = self.installed().config
        answer = p4r.ForwardingPipelineConfig()
        if config.HasField("cookie"):
            answer.cookie.CopyFrom(config.cookie)
        if response_type in {_Get.ALL, _Get.P4INFO_AND_COOKIE}:
            answer.p4info.CopyFrom(config.p4info)
        if response_type in {_Get.ALL, _Get.DEVICE_CONFIG_AND_COOKIE}:
            answer.p4_device_config = config.p4_device_config
        return answer

    def _verify(self, config: p4r.ForwardingPipelineConfig) -> InstalledPipeline:
        """Do all that can fail, so that installing cannot."""
        if not config.HasField("p4info"):
            raise p4.invalid("The configuration has no P4Info: send that of the program with it.")
        copy = p4r.ForwardingPipelineConfig()
        copy.CopyFrom(config)
        given = self._give(_program_in(config.p4_device_config))
        try:
            schema = p4.build_schema(copy.p4info, given.program)
            prepared = self._device.prepare(given)
        except RequestError:
            raise
        except MalformedProgramError as error:
            raise p4.invalid(str(error)) from error
        except SoftSwitchError as error:
            raise p4.unimplemented(str(error)) from error
        state = prepared.state
        batches = None
        if isinstance(state, NativeState):
            batches = NativeBatches(state, schema.tables.values())
        return InstalledPipeline(copy, schema, state, batches, prepared.install)


def _program_in(config: bytes) -> bytes:
    """Return the program of a P4DeviceConfig message, as older clients send it, or the bytes."""
    try:
        message = Empty.FromString(config)
    except DecodeError:
        return config
    fields = UnknownFieldSet(message)
    found = {fields[n].field_number: fields[n].data for n in range(len(fields))}
    program = found.get(_DEVICE_DATA)
    return program if isinstance(program, bytes) else config
