"""One process of tests/training/test_backend.py: python -m ... RANK SIZE FOLDER."""

import sys
import traceback
import warnings
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from switchgnn.host.base.errors import HostError
from switchgnn.torch_backend import register
from switchgnn.training.exchange.process_group import SwitchHook, switch_hook
from tests.training.reducing import BesideGloo

STEPS = 6
LOST = HostError("Worker 1 has not sent its part.", [1])


class Program:
    def __init__(self, rank, size, folder):
        self.rank, self.size, self.folder = rank, size, folder
        self.reducers = []

    def open_reducer(self, rank, size, **options):
        store = self.store(f"switch-{len(self.reducers)}")
        self.reducers.append(BesideGloo(store, rank, size, **options))
        return self.reducers[-1]

    def store(self, name):
        return dist.FileStore(str(self.folder / name), self.size)

    @contextmanager
    def group(self, backend, name):
        dist.init_process_group(
            backend, store=self.store(name), rank=self.rank, world_size=self.size
        )
        try:
            yield dist.group.WORLD
        finally:
            dist.destroy_process_group()

    def losses(self, wrap, dtype=torch.float32):
        """The losses of a small training, in which each rank has its own rows."""
        torch.manual_seed(3)
        layers = [layer for _ in range(5) for layer in (nn.Linear(64, 64), nn.ReLU())]
        model = wrap(nn.Sequential(*layers, nn.Linear(64, 3)).to(dtype))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        found = []
        for step in range(STEPS):
            rows = torch.Generator().manual_seed(100 * step + self.rank)
            inputs = torch.randn(16, 64, generator=rows, dtype=dtype)
            loss = (model(inputs) - inputs[:, :3]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            mean = loss.detach().float().clone()
            dist.all_reduce(mean)
            found.append(mean.item() / self.size)
        return found

    def run(self):
        found = {}
        with self.group("gloo", "plain"):
            found["gloo"] = self.losses(many_buckets)
            found["gloo bfloat16"] = self.losses(many_buckets, torch.bfloat16)
            found["hook"], found["hook arrays"] = self.hooked()
        register(self.open_reducer)
        register()
        with self.group("switchgnn", "switch") as group:
            found["backend"] = dist.get_backend()
            found["switch"] = self.losses(many_buckets)
            # Less those of the losses.
            found["arrays"] = group.arrays - STEPS
            found["switch bfloat16"] = self.losses(many_buckets, torch.bfloat16)
            found["fsdp"] = self.losses(sharded)
            found["fallbacks"] = dict(group.fallbacks)
            found["subgroup"] = self.subgroup()
            found["objects"] = self.objects()
            found["functional"] = self.functional(group)
        register(lambda *who: self.open_reducer(*who, error=LOST, fail_at=3))
        with self.group("switchgnn", "lost"):
            try:
                self.losses(many_buckets)
            except RuntimeError as error:
                found["error"] = str(error)
        return found

    def hooked(self):
        state = SwitchHook(self.open_reducer)

        def wrap(model):
            model = many_buckets(model)
            model.register_comm_hook(state, switch_hook)
            return model

        losses = self.losses(wrap)
        arrays = state.switch.arrays
        # No switch adds these.
        self.losses(wrap, torch.float64)
        assert set(state.fallbacks) == {"tensors of torch.float64"}
        assert state.switch.arrays == arrays
        state.close()
        return losses, arrays

    def subgroup(self):
        group = dist.new_group([0, 1])
        values = torch.tensor([self.rank + 1.0])
        if self.rank < 2:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                dist.all_reduce(values, group=group)
        return values.item()

    def functional(self, group):
        """As compiled programs and DTensor call it, from C++."""
        arrays = group.arrays
        found = functional.all_reduce(torch.full((3,), self.rank + 1.0), "avg", group).tolist()
        return found, group.arrays - arrays

    def objects(self):
        found = [None] * self.size
        dist.all_gather_object(found, {"rank": self.rank})
        dist.barrier()
        return [each["rank"] for each in found]


def many_buckets(model):
    """DDP with a bucket for about every layer, of which many are on their way together."""
    return DistributedDataParallel(model, bucket_cap_mb=0.016)


def sharded(model):
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer)
    return fully_shard(model)


def main():
    rank, size, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    torch.set_num_threads(1)
    try:
        found = Program(rank, size, folder).run()
    except BaseException:
        traceback.print_exc()
        raise
    torch.save(found, folder / f"{rank}.pt")


if __name__ == "__main__":
    main()
