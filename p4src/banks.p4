// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// All banks, each touched at most once per pass. The first slot that completes
// ends the pass: its sum leaves, and the loop goes on behind it.
#ifndef _BANKS_
#define _BANKS_

#include "headers.p4"
#include "metadata.p4"
#include "sizes.p4"
#include "aggregator.p4"

control Banks(in headers_t hdr, inout metadata_t meta) {
    Aggregator(0) bank0;
    Aggregator(1) bank1;
    Aggregator(2) bank2;
    Aggregator(3) bank3;
    Aggregator(4) bank4;
    Aggregator(5) bank5;
    Aggregator(6) bank6;
    Aggregator(7) bank7;

    // Cell n: passes that made n contributions.
    counter(BANKS + 1, CounterType.packets) passes;

    apply {
        meta.oldest = meta.tag ++ 16w0;
        meta.newest = meta.tag ++ 16w0xffff;
        bank0.apply(hdr, meta, meta.slots.slot0, meta.slots.expected0);
        bank1.apply(hdr, meta, meta.slots.slot1, meta.slots.expected1);
        bank2.apply(hdr, meta, meta.slots.slot2, meta.slots.expected2);
        bank3.apply(hdr, meta, meta.slots.slot3, meta.slots.expected3);
        bank4.apply(hdr, meta, meta.slots.slot4, meta.slots.expected4);
        bank5.apply(hdr, meta, meta.slots.slot5, meta.slots.expected5);
        bank6.apply(hdr, meta, meta.slots.slot6, meta.slots.expected6);
        bank7.apply(hdr, meta, meta.slots.slot7, meta.slots.expected7);
        if (meta.outcome == AGGREGATED) {
            passes.count((bit<32>) meta.contributions);
        }
    }
}

#endif
