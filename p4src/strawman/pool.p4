// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// How many slots of each bank may be handed out: the memory that the strawman has.
#ifndef _POOL_
#define _POOL_

#include "../headers.p4"

struct limits_t {
    slot_t limit0;
    slot_t limit1;
    slot_t limit2;
    slot_t limit3;
    slot_t limit4;
    slot_t limit5;
    slot_t limit6;
    slot_t limit7;
}

control Pool(out limits_t limits) {
    action set_limits(slot_t limit0, slot_t limit1, slot_t limit2, slot_t limit3,
                      slot_t limit4, slot_t limit5, slot_t limit6, slot_t limit7) {
        limits = { limit0, limit1, limit2, limit3, limit4, limit5, limit6, limit7 };
    }

    table pool {
        actions = { set_limits; }
        default_action = set_limits(0, 0, 0, 0, 0, 0, 0, 0);
        size = 1;
    }

    apply {
        pool.apply();
    }
}

#endif
