"""The same over the switch, with DistributedDataParallel: torchrun ... together.py.

It divides the sums of gradients by the number of workers, so each share of the loss is taken as
often as there are workers.
"""

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it
from net import Net
from torch import nn

import switchgnn.torch as sg

with sg.join("job", network="network.toml") as worker:
    data = worker.data
    train, losses = data.train_mask, []
    torch.manual_seed(1)
    model = nn.parallel.DistributedDataParallel(worker.wrap(Net(data.num_features, 4)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(10):
        optimizer.zero_grad()
        out = model(data.x, data.edge_index)
        share = worker.mean(F.cross_entropy(out[train], data.y[train], reduction="sum"))
        (share * worker.workers).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(worker.sum(share).item())
        print(f"epoch {epoch + 1}: loss {losses[-1]:.5f}")
    if (whole := worker.gather(out)) is not None:
        torch.save({"losses": losses, "predictions": whole}, "result.pt")
