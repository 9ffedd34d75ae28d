"""The same over the switch: torchrun ... together.py, beside job/ and network.toml."""

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it
from net import Net

import switchgnn.dgl as sg

torch.manual_seed(0)
with sg.join("job", network="network.toml") as worker:
    g = sg.graph_of(worker.data)
    x, y, train, losses = g.ndata["feat"], g.ndata["label"], g.ndata["train_mask"], []
    model = worker.wrap(Net(x.shape[1], 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(10):
        optimizer.zero_grad()
        out = model(g, x)
        loss = worker.mean(F.cross_entropy(out[train], y[train], reduction="sum"))
        loss.backward()
        loss = worker.reduce(model, loss)
        optimizer.step()
        losses.append(loss)
        print(f"epoch {epoch + 1}: loss {losses[-1]:.5f}")
    if (whole := worker.gather(out)) is not None:
        torch.save({"losses": losses, "predictions": whole}, "result.pt")
