// The window of tags that may pass, and what registers of tags do; as TagWindow in ../barrier.p4.
#pragma once

#include "metadata.p4"
#include "headers.p4"

const bit<32> POOL_CELLS = JOB_CELLS * MAX_POOLS;

#define READ(register, name) \
    ALU_2(register, name, \
        one = value.hi; \
        two = value.lo;)
// Whether the packet's tag is newer, or the same, and the tag of the cell.
#define COMPARE(register, name) \
    ALU_4(register, name, \
        one = 0; \
        two = 0; \
        if (SAME(value, meta)) { \
            two = value.hi; \
        } \
        if (NEWER(value, meta)) { \
            one = 1; \
        } \
        three = value.hi; \
        four = value.lo;)
#define MATCH(register, name) \
    ALU(register, name, \
        one = 0; \
        if (SAME(value, meta)) { \
            one = value.hi; \
        })
#define WRITE(register, name) \
    ALU_0(register, name, \
        value.hi = meta.loop.tag_hi; \
        value.lo = meta.loop.tag_lo;)

// The window of features. In it, a packet is what Arrival said.
control TagWindow(in headers_t hdr,
                  inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    REGISTER(POOL_CELLS, feature_tag)

    bit<32> newer; bit<32> round;

    ALU_2(feature_tag, compare,
        one = 0;
        if (NEWER(value, meta)) {
            one = 1;
        }
        two = value.hi;)
    WRITE(feature_tag, move)

    action differ() { round = round ^ meta.loop.tag_hi; }
    action mask() { round = round & SESSION_BITS; }

    action refuse(outcome_t outcome) { meta.outcome = outcome; }

    action decide() {
        meta.outcome = meta.loop.verdict;
        standard_metadata.egress_spec = meta.loop.to;
        standard_metadata.mcast_grp = meta.loop.group;
    }

    // Also whether the block is known.
    table verdict {
        key = {
            meta.loop.any_time: ternary; round: ternary; newer: ternary; meta.loop.any_tag: ternary;
            meta.loop.no_window: ternary;
            meta.loop.plain: ternary; meta.unknown_block: ternary; meta.loop.verdict: ternary;
        }
        actions = { refuse; decide; }
        const default_action = decide();
        SIZE(8)
        const entries = {
            (1, _, _, _, _, _, _, _): decide();
            (_, 0, 1, _, 0, _, _, _): refuse(WRONG_TAG);
            (_, 0, _, _, 0, 1, 1, PENDING): refuse(UNKNOWN_BLOCK);
            (_, 0, _, _, 0, 1, 1, WRONG_COUNT): refuse(UNKNOWN_BLOCK);
            (_, 0, _, _, 0, _, _, _): decide();
            (_, _, _, 0, _, _, _, _): refuse(WRONG_TAG);
            (_, _, _, _, _, 1, 1, PENDING): refuse(UNKNOWN_BLOCK);
            (_, _, _, _, _, 1, 1, WRONG_COUNT): refuse(UNKNOWN_BLOCK);
        }
    }

    apply {
        if (meta.loop.step == step_t.MOVE) {
            RUN_0(move, meta.loop.pool)
        } else if (meta.loop.step == step_t.FIRST) {
            RUN_2(compare, meta.loop.pool, newer, round)
            differ();
            mask();
            verdict.apply();
        }
    }
}
