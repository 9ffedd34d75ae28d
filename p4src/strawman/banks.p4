// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The strawman's banks, in place of ../banks.p4. The slot in an entry of `fanout` is here
// the number of a destination in its bank, and the slots are handed out to the
// destinations in the order in which their first contributions come.
#ifndef _BANKS_
#define _BANKS_

#include "../headers.p4"
#include "../metadata.p4"
#include "../sizes.p4"
#include "pool.p4"
#include "pooled_aggregator.p4"

control Banks(in headers_t hdr, inout metadata_t meta) {
    Pool() pool;
    PooledAggregator(0) bank0;
    PooledAggregator(1) bank1;
    PooledAggregator(2) bank2;
    PooledAggregator(3) bank3;
    PooledAggregator(4) bank4;
    PooledAggregator(5) bank5;
    PooledAggregator(6) bank6;
    PooledAggregator(7) bank7;

    limits_t limits;

    // Cell n: passes that made n contributions.
    counter(BANKS + 1, CounterType.packets) passes;

    apply {
        pool.apply(limits);
        bank0.apply(hdr, meta, meta.slots.slot0, meta.slots.expected0, limits.limit0);
        bank1.apply(hdr, meta, meta.slots.slot1, meta.slots.expected1, limits.limit1);
        bank2.apply(hdr, meta, meta.slots.slot2, meta.slots.expected2, limits.limit2);
        bank3.apply(hdr, meta, meta.slots.slot3, meta.slots.expected3, limits.limit3);
        bank4.apply(hdr, meta, meta.slots.slot4, meta.slots.expected4, limits.limit4);
        bank5.apply(hdr, meta, meta.slots.slot5, meta.slots.expected5, limits.limit5);
        bank6.apply(hdr, meta, meta.slots.slot6, meta.slots.expected6, limits.limit6);
        bank7.apply(hdr, meta, meta.slots.slot7, meta.slots.expected7, limits.limit7);
        if (meta.outcome == AGGREGATED) {
            passes.count((bit<32>) meta.contributions);
        }
    }
}

#endif
