# SPDX-FileCopyrightText: 2026 The SwitchGNN authors
# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace

import pytest

from switchgnn.base.described import networks_of
from switchgnn.base.network import leaf_spine_networks, star_network
from tests.network.usual import described_leaf_spine, described_star


@pytest.mark.parametrize("workers", [1, 4, 128])
def test_a_star_with_the_usual_addresses_is_the_usual_star(workers):
    assert networks_of(described_star(workers)) == (star_network(workers),)


@pytest.mark.parametrize(
    ("leaf_of_worker", "spines"), [((0, 0, 1), 1), ((0, 1, 1, 2), 2), ((0,) * 3 + (1,) * 3, 3)]
)
def test_a_leaf_spine_with_the_usual_addresses_is_the_usual_one(leaf_of_worker, spines):
    network = described_leaf_spine(leaf_of_worker, spines)
    assert network.leaf_of_worker == leaf_of_worker
    assert networks_of(network) == leaf_spine_networks(leaf_of_worker, spines).switches


def test_switches_may_come_in_any_order():
    network = described_leaf_spine((0, 0, 1), 2)
    turned = replace(network, switches=(*network.switches[2:], *network.switches[1::-1]))
    usual = leaf_spine_networks((0, 0, 1), 2)
    assert networks_of(turned) == usual.switches
