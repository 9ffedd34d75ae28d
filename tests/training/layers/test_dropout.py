"""Dropout by vertex: fair, and the same however the vertices are split."""

import pytest
import torch
from torch import nn

from switchgnn.training.layers import dropout
from switchgnn.training.layers.dropout import Draws, VertexDropout, begin_epoch, drop_by_vertex

VERTICES, COLUMNS = 2000, 64


def splitmix64(state):
    """The published generator, on Python's integers."""
    mask = 2**64 - 1
    z = state & mask
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & mask
    return z ^ (z >> 31)


def expected_unit(seed, epoch, call, vertex, column):
    golden = 0x9E3779B97F4A7C15
    key = splitmix64(splitmix64(seed * golden + epoch) * golden + call)
    of_vertex = splitmix64(vertex * golden + key)
    return (splitmix64(of_vertex + (column + 1) * golden) >> 40) / 2**24


def made(share=0.5, seed=0, vertices=None, kind=nn.Dropout):
    layer = kind(share)
    VertexDropout(layer, Draws(torch.arange(VERTICES) if vertices is None else vertices, seed))
    return layer


def test_units_are_drawn_by_splitmix64():
    layer = made(share=0.3, seed=7)
    begin_epoch(layer, seed=0, epoch=5, worker=0)
    rows = torch.ones(VERTICES, COLUMNS)
    layer(rows)
    second = layer(rows)
    for vertex, column in [(0, 0), (1, 0), (0, 1), (1999, 63), (512, 17)]:
        kept = expected_unit(7, 5, 2, vertex, column) >= 0.3
        assert second[vertex, column] == pytest.approx(1 / 0.7 if kept else 0.0)


@pytest.mark.parametrize("columns", [1, 17, 9000])
def test_another_device_draws_the_same(columns, monkeypatch):
    """Other devices use signed words; here they run on the CPU."""
    monkeypatch.setattr(dropout, "_AT_ONCE_ELSEWHERE", 10_000)
    vertices = torch.randperm(2**40 // 2**36) * 2**34
    draws, least = Draws(vertices, 2**63 + 5), round(0.3 * 2**24)
    there = draws._kept_elsewhere(vertices, columns, least)
    assert torch.equal(there, torch.from_numpy(draws._kept_on_cpu(vertices, columns, least)))
    assert 0.6 < there.float().mean() < 0.8 or columns == 1


def test_parts_drop_what_the_whole_drops():
    rows = torch.randn(VERTICES, 5)
    whole = made()(rows)
    own = torch.randperm(VERTICES)[:300]
    assert torch.equal(made(vertices=own)(rows[own]), whole[own])


def test_nothing_is_dropped_in_evaluation_or_at_zero():
    rows = torch.randn(VERTICES, 5)
    assert made().eval()(rows) is rows
    assert made(0.0)(rows) is rows


def build():
    torch.manual_seed(0)
    inner = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5))
    model = nn.Sequential(inner, nn.Dropout(0.5))
    drop_by_vertex(model, torch.arange(VERTICES), 3)
    return model


def test_an_epoch_draws_the_same_whatever_came_before():
    model, fresh, rows = build(), build(), torch.randn(VERTICES, 4)
    for epoch in (1, 2):
        begin_epoch(model, seed=0, epoch=epoch, worker=1)
        first, second = model(rows), model(rows)
        assert not torch.equal(first, second)
    begin_epoch(fresh, seed=0, epoch=2, worker=1)
    assert torch.equal(fresh(rows), first)
    begin_epoch(fresh, seed=0, epoch=3, worker=1)
    assert not torch.equal(fresh(rows), first)


def test_other_random_numbers_follow_from_seed_epoch_and_worker():
    drawn = set()
    for seed, epoch, worker in [(0, 1, 0), (1, 1, 0), (0, 2, 0), (0, 1, 1), (0, 1, 0)]:
        begin_epoch(build(), seed=seed, epoch=epoch, worker=worker)
        drawn.add(float(torch.rand(1)))
    assert len(drawn) == 4


KINDS = [nn.Dropout, nn.AlphaDropout, nn.Dropout1d, nn.Dropout2d, nn.FeatureAlphaDropout]
FLAT, DEEP = (VERTICES, 6), (VERTICES, 6, 4)


@pytest.mark.parametrize("shape", [FLAT, DEEP])
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_drops_what_that_of_torch_drops(kind, shape, recwarn):
    """Which units fall together, and how large dropped and scaled ones are."""
    rows = torch.rand(shape) + 1
    torch.manual_seed(0)
    both = made(0.3, kind=kind)(rows), kind(0.3)(rows)
    ours, theirs = ((each < rows * 0.999).view(VERTICES, 6, -1) for each in both)
    for dim in (1, 2):
        together = [bool((each == each.narrow(dim, 0, 1)).all()) for each in (ours, theirs)]
        assert together[0] == together[1]
    assert both[0].mean() == pytest.approx(float(both[1].mean()), rel=0.05)
    assert both[0].std() == pytest.approx(float(both[1].std()), rel=0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_all_is_dropped_at_one_and_nothing_in_place_is_missed(kind):
    rows = torch.rand(FLAT)
    assert not made(1.0, kind=kind)(rows).any()
    layer = made(0.5, kind=kind)
    layer.inplace = True
    assert layer(rows) is rows


def test_restored_random_numbers_draw_the_same_units():
    layer, rows = made(), torch.rand(FLAT)
    state = torch.get_rng_state()
    first, second = layer(rows), layer(rows)
    torch.set_rng_state(state)
    assert torch.equal(layer(rows), first)
    assert torch.equal(layer(rows), second)
    third = layer(rows)
    assert not torch.equal(third, first)
    assert not torch.equal(third, second)
