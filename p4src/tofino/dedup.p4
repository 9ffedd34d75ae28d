// Duplicates, and the number of features of a group that were accepted; as ../dedup.p4.
#pragma once

#include "metadata.p4"

// Each pool has a register: together they do not fit into a stage.
#define LAST_TAG(p) \
    REGISTER(MAX_SOURCES, last_tag##p) \
    CLAIM(last_tag##p, remember##p)

// Accepts each source once per unit.
control Dedup(in headers_t hdr, inout metadata_t meta) {
    LAST_TAG(0) LAST_TAG(1) LAST_TAG(2) LAST_TAG(3)

    apply {
        if (hdr.switchgnn.pool == 0) {
            RUN_2(remember0, meta.loop.source, meta.newer, meta.same)
        } else if (hdr.switchgnn.pool == 1) {
            RUN_2(remember1, meta.loop.source, meta.newer, meta.same)
        } else if (hdr.switchgnn.pool == 2) {
            RUN_2(remember2, meta.loop.source, meta.newer, meta.same)
        } else {
            RUN_2(remember3, meta.loop.source, meta.newer, meta.same)
        }
    }
}

#define GROUP_BITS 5
const bit<32> ACCEPTED_CELLS = (MAX_POOLS * MAX_WORKERS) << GROUP_BITS;

// A cell belongs to the latest group of the latest tag.
control Accepted(in headers_t hdr, inout metadata_t meta) {
    REGISTER(ACCEPTED_CELLS, group_tag)
    REGISTER_16(ACCEPTED_CELLS, groups)  // group, count

    index_t index;
    bit<32> newer; bit<32> same;
    bit<16> one_more; bit<16> accepted;

    CLAIM(group_tag, claim)
    ALU_16_0(groups, restart,
        value.hi = hdr.switchgnn.feature_group;
        value.lo = one_more;)
    ALU_16(groups, count_one,
        one = 0;
        if (value.hi == hdr.switchgnn.feature_group) {
            value.lo = value.lo + one_more;
            one = value.lo;
        } else if (value.hi < hdr.switchgnn.feature_group) {
            value.hi = hdr.switchgnn.feature_group;
            value.lo = one_more;
        })

    JOIN_4(16, join_cell, index, 2w0, hdr.switchgnn.pool, meta.loop.worker[6:0],
           hdr.switchgnn.feature_group[GROUP_BITS - 1:0])

    apply {
        join_cell();
        one_more = 0;
        if (meta.newer == 1) {
            one_more = 1;
        }
        accepted = 0;
        RUN_2(claim, index, newer, same)
        if (newer == 1) {
            RUN_0(restart, index)
        } else if (same != 0) {
            RUN(count_one, index, accepted)
        }
        // The first of a group, or nothing is known of an older one.
        if (accepted == 0) {
            accepted = one_more;
        }
        meta.loop.accepted = accepted;
    }
}
