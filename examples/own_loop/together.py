"""The same over the switch: torchrun ... together.py, beside job/ and network.toml."""

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it
from torch_geometric.nn import GCN

import switchgnn.torch as sg

torch.manual_seed(0)
with sg.join("job", network="network.toml") as worker:
    data = worker.data
    train, losses = data.train_mask, []
    model = worker.wrap(GCN(data.num_features, 32, 2, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(10):
        optimizer.zero_grad()
        out = model(data.x, data.edge_index)
        loss = worker.mean(F.cross_entropy(out[train], data.y[train], reduction="sum"))
        loss.backward()
        loss = worker.reduce(model, loss)
        optimizer.step()
        losses.append(loss)
        print(f"epoch {epoch + 1}: loss {losses[-1]:.5f}")
    if (whole := worker.gather(out)) is not None:
        torch.save({"losses": losses, "predictions": whole}, "result.pt")
