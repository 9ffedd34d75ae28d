"""Training as PyG's examples do it: one process, the whole graph. Shares nothing with ours."""

import numpy as np
import torch
from torch.nn import functional
from torch_geometric.nn import models

from switchgnn.training.layers.pyg_layers import templates_removed

MODELS = {"gcn": models.GCN, "sage": models.GraphSAGE, "gin": models.GIN}


@templates_removed()
def train_plainly(data, *, model, layers, hidden, epochs, seed, rate=0.01, decay=5e-4):
    """Return the loss of every epoch, the weights at the end, and the accuracies."""
    torch.manual_seed(seed)
    net = MODELS[model](data.features.shape[1], hidden, layers, data.classes)
    loops = np.stack([data.self_loops, data.self_loops])
    edges = torch.from_numpy(np.concatenate([np.stack(data.graph.edges()), loops], axis=1)).long()
    features, labels = torch.from_numpy(data.features), torch.from_numpy(data.labels)
    train = torch.from_numpy(data.train)
    optimizer = torch.optim.Adam(net.parameters(), lr=rate, weight_decay=decay)
    losses = []
    for _ in range(epochs):
        optimizer.zero_grad()
        loss = functional.cross_entropy(net(features, edges)[train], labels[train])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        right = net(features, edges).argmax(dim=1) == labels
    accuracies = {
        name: float(right[torch.from_numpy(getattr(data, name))].float().mean())
        for name in ("train", "validation", "test")
    }
    return losses, net.state_dict(), accuracies
