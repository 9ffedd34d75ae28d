"""The same over the switch: torchrun ... together.py, beside job/ and network.toml."""

import torch
from links import links, with_negatives
from sklearn.metrics import roc_auc_score
from torch.nn.functional import binary_cross_entropy_with_logits as bce
from torch_geometric.nn import GCN

import switchgnn.torch as sg

torch.manual_seed(0)
data, train, test = links()
vertices, losses = data.num_nodes, []
with sg.join("job", network="network.toml") as worker:
    data = worker.data
    model = worker.wrap(GCN(data.num_features, 32, 2, 16))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(10):
        pairs, label = with_negatives(train, vertices, seed=epoch)
        mine = torch.isin(pairs[0], data.n_id)
        optimizer.zero_grad()
        out = model(data.x, data.edge_index)
        source, target = worker.rows(out, pairs[:, mine])
        score = (source * target).sum(1)
        loss = worker.mean(bce(score, label[mine], reduction="sum"), count=len(label))
        loss.backward()
        loss = worker.reduce(model, loss)
        optimizer.step()
        losses.append(loss)
        print(f"epoch {epoch + 1}: loss {losses[-1]:.5f}")
    if (whole := worker.gather(out)) is not None:
        pairs, label = with_negatives(test, vertices, seed=len(losses))
        source, target = whole[pairs]
        auc = roc_auc_score(label, (source * target).sum(1))
        print(f"AUC of held-out edges: {auc:.3f}")
        torch.save({"losses": losses, "predictions": whole, "auc": auc}, "result.pt")
