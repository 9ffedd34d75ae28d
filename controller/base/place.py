"""Where a job is on a switch: its number, its ports, and where its ranges begin."""

from dataclasses import dataclass

from switchgnn.base.network import DEFAULT_JOB

# As in headers.p4.
FIRST_LOOP_PORT = 256
LOOP_LANES = 8


@dataclass(frozen=True)
class Place:
    """A job's part of a switch; the numbers of a plan count from the beginning of each range."""

    job: int = 1  # its number on the switch
    name: str = DEFAULT_JOB
    since: int = 0  # when it was admitted, in seconds since 1970
    ports: tuple[int, ...] = ()  # of its neighbours
    first_slot: int = 0  # in each bank
    slots: int = 0  # in each bank
    # block b of the plan is `first_block + b` on the switch; b is 0 at a barrier, and a worker may
    # send a feature with it, so no job has an entry there
    first_block: int = 0
    last_block: int = 0  # of the plan
    first_source: int = 0
    sources: int = 0
    first_worker: int = 0
    workers: int = 0
    first_set: int = 0
    sets: int = 0  # of replicas, each with a multicast group
    # Slots of all banks that jobs share; `slots` is then the number of destinations in each bank.
    # None: the job has slots of its own.
    shared: int | None = None

    @property
    def blocks(self) -> int:
        """How many numbers of blocks it takes, with that of barriers."""
        return self.last_block + 1

    @property
    def loop_ports(self) -> range:
        """The ports of the loop that only this job uses."""
        first = FIRST_LOOP_PORT + (self.job - 1) * LOOP_LANES
        return range(first, first + LOOP_LANES)

    @property
    def workers_group(self) -> int:
        """The multicast group of the neighbours below; the next one is of all stations."""
        return 2 * self.job


ALONE = Place(last_block=0xFFFF)
"""The place of a job that has the switch to itself."""
