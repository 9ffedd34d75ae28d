"""A training loop with DGL, in one process: python alone.py."""

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it
from digits import digits
from net import Net

torch.manual_seed(0)
g = digits()
x, y, train, losses = g.ndata["feat"], g.ndata["label"], g.ndata["train_mask"], []
model = Net(x.shape[1], 10)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(10):
    optimizer.zero_grad()
    out = model(g, x)
    loss = F.cross_entropy(out[train], y[train])
    loss.backward()
    loss = loss.item()
    optimizer.step()
    losses.append(loss)
    print(f"epoch {epoch + 1}: loss {losses[-1]:.5f}")
whole = out.detach()
torch.save({"losses": losses, "predictions": whole}, "result.pt")
