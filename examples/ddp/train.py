"""Any DDP script; a switch adds its gradients: switchgnn launch --workers 4 train.py."""

import os

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group(os.environ.get("BACKEND", "switchgnn"))
torch.manual_seed(dist.get_rank())
model = nn.parallel.DistributedDataParallel(nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for step in range(20):
    rows = torch.randn(32, 64)
    loss = (model(rows) - rows[:, :8]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    dist.all_reduce(mean := loss.detach() / dist.get_world_size())
    if dist.get_rank() == 0:
        print(f"step {step + 1}: loss {mean.item():.5f}")
dist.destroy_process_group()
