"""GIN on a graph of communities, in one process: python alone.py."""

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it
from communities import communities
from torch_geometric.nn import GIN

data = communities()
train, losses = data.train_mask, []
torch.manual_seed(1)
model = GIN(data.num_features, 16, 2, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(10):
    optimizer.zero_grad()
    out = model(data.x, data.edge_index)
    loss = F.cross_entropy(out[train], data.y[train])
    loss.backward()
    loss = loss.item()
    optimizer.step()
    losses.append(loss)
    print(f"epoch {epoch + 1}: loss {losses[-1]:.5f}")
whole = out.detach()
torch.save({"losses": losses, "predictions": whole}, "result.pt")
