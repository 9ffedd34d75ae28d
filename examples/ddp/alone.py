"""A model of one's own, in one process: python alone.py."""

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it
from karate import karate
from net import Net
from torch import nn

data = karate()
train, losses = data.train_mask, []
torch.manual_seed(1)
model = Net(data.num_features, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(10):
    optimizer.zero_grad()
    out = model(data.x, data.edge_index)
    loss = F.cross_entropy(out[train], data.y[train])
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    losses.append(loss.item())
    print(f"epoch {epoch + 1}: loss {losses[-1]:.5f}")
whole = out.detach()
torch.save({"losses": losses, "predictions": whole}, "result.pt")
