// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// All banks, each touched at most once per pass. A slot of 64, 128 or 256 lanes has two, four or
// eight banks side by side: its state is in the first one, and the others do as that one does. The
// first slot that completes ends the pass: its sum leaves, and the loop goes on behind it.
#ifndef _BANKS_
#define _BANKS_

#include "headers.p4"
#include "metadata.p4"
#include "sizes.p4"
#include "aggregator.p4"
#include "lanes.p4"

// The bank begins a slot.
#define BEGIN(b) \
    bank##b.apply(hdr, meta, meta.slots.slot##b, meta.slots.expected##b); \
    if (meta.addition != NO_ADDITION) { \
        lanes##b.apply(meta.addition, meta.index, meta.first, meta.sum.lanes.chunk0); \
    }
// The bank goes on with chunk c of the slot before it, if the frame has that many.
#define GO_ON(b, c) \
    if (meta.addition != NO_ADDITION && hdr.chunk##c.isValid()) { \
        lanes##b.apply(meta.addition, meta.index, hdr.chunk##c.lanes, \
                       meta.sum.lanes.chunk##c); \
    }

control Banks(in headers_t hdr, inout metadata_t meta) {
    Aggregator(0) bank0;
    Aggregator(1) bank1;
    Aggregator(2) bank2;
    Aggregator(3) bank3;
    Aggregator(4) bank4;
    Aggregator(5) bank5;
    Aggregator(6) bank6;
    Aggregator(7) bank7;

    Lanes() lanes0;
    Lanes() lanes1;
    Lanes() lanes2;
    Lanes() lanes3;
    Lanes() lanes4;
    Lanes() lanes5;
    Lanes() lanes6;
    Lanes() lanes7;

    // Cell n: passes that made n contributions.
    counter(BANKS + 1, CounterType.packets) passes;

    apply {
        meta.oldest = meta.tag ++ 16w0;
        meta.newest = meta.tag ++ 16w0xffff;
        BEGIN(0)
        if (meta.loop.width <= LANES_32) {
            BEGIN(1)
        } else {
            GO_ON(1, 1)
        }
        if (meta.loop.width <= LANES_64) {
            BEGIN(2)
        } else {
            GO_ON(2, 2)
        }
        if (meta.loop.width <= LANES_32) {
            BEGIN(3)
        } else if (meta.loop.width <= LANES_64) {
            GO_ON(3, 1)
        } else {
            GO_ON(3, 3)
        }
        if (meta.loop.width <= LANES_128) {
            BEGIN(4)
        } else {
            GO_ON(4, 4)
        }
        if (meta.loop.width <= LANES_32) {
            BEGIN(5)
        } else if (meta.loop.width <= LANES_128) {
            GO_ON(5, 1)
        } else {
            GO_ON(5, 5)
        }
        if (meta.loop.width <= LANES_64) {
            BEGIN(6)
        } else if (meta.loop.width <= LANES_128) {
            GO_ON(6, 2)
        } else {
            GO_ON(6, 6)
        }
        if (meta.loop.width <= LANES_32) {
            BEGIN(7)
        } else if (meta.loop.width <= LANES_64) {
            GO_ON(7, 1)
        } else if (meta.loop.width <= LANES_128) {
            GO_ON(7, 3)
        } else {
            GO_ON(7, 7)
        }
        if (meta.outcome == AGGREGATED) {
            passes.count((bit<32>) meta.contributions);
        }
    }
}

#endif
