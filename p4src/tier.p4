// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Where this switch stands among several. A leaf has workers below and spines
// above; a spine has leaves below, and takes them for workers with partial sums.
// The initial setting is that of a switch alone.
#ifndef _TIER_
#define _TIER_

#include "headers.p4"
#include "metadata.p4"

control Tier(inout metadata_t meta) {
    // above is the port to the switch that collects the barrier of all, number
    // what this switch is called there.
    action set_tier(port_t above, bit<32> number, worker_set_t elsewhere, bit<1> leaves) {
        meta.above_port = above;
        meta.switch_number = number;
        meta.elsewhere = elsewhere;
        meta.leaves_below = leaves;
    }

    table tier {
        actions = { set_tier; }
        default_action = set_tier(0, 0, 0, 0);
        size = 1;
    }

    apply {
        tier.apply();
    }
}

#endif
