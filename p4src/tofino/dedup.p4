// Duplicates, and the number of features of a group that were accepted; as ../dedup.p4.
#pragma once

#include "metadata.p4"

// Each pool has a register: together they do not fit into a stage.
#define LAST_TAG(p) \
    REGISTER(MAX_SOURCES, last_tag##p) \
    ALU_2(last_tag##p, remember##p, \
        one = 0; \
        other = 0; \
        if (SAME(value, meta)) { \
            other = 1; \
        } \
        if (NEWER(value, meta)) { \
            one = 1; \
            value.hi = meta.loop.tag_hi; \
            value.lo = meta.loop.tag_lo; \
        })

// Accepts each source once per unit.
control Dedup(in headers_t hdr, inout metadata_t meta) {
    LAST_TAG(0)
    LAST_TAG(1)
    LAST_TAG(2)
    LAST_TAG(3)

    bit<32> newer;
    bit<32> same;

    apply {
        if (hdr.switchgnn.pool == 0) {
            RUN_2(remember0, meta.source_index, newer, same)
        } else if (hdr.switchgnn.pool == 1) {
            RUN_2(remember1, meta.source_index, newer, same)
        } else if (hdr.switchgnn.pool == 2) {
            RUN_2(remember2, meta.source_index, newer, same)
        } else {
            RUN_2(remember3, meta.source_index, newer, same)
        }
        if (same == 1) {
            meta.outcome = DUPLICATE;
        } else if (newer == 0) {
            meta.outcome = STALE;
        }
    }
}

#define GROUP_BITS 5
const bit<32> ACCEPTED_CELLS = (MAX_POOLS * MAX_WORKERS) << GROUP_BITS;

// A cell belongs to the latest group of the latest tag.
control Accepted(in headers_t hdr, inout metadata_t meta) {
    REGISTER(ACCEPTED_CELLS, group_tag)
    REGISTER(ACCEPTED_CELLS, groups)  // group, count

    bit<32> index;
    bit<32> newer;
    bit<32> same;
    bit<32> group;
    bit<32> one_more;
    bit<32> accepted;

    ALU_2(group_tag, claim,
        one = 0;
        other = 0;
        if (SAME(value, meta)) {
            other = 1;
        }
        if (NEWER(value, meta)) {
            one = 1;
            value.hi = meta.loop.tag_hi;
            value.lo = meta.loop.tag_lo;
        })
    ALU_0(groups, restart,
        value.hi = group;
        value.lo = one_more;)
    ALU(groups, count_one,
        one = 0;
        if (value.hi == group) {
            value.lo = value.lo + one_more;
            one = value.lo;
        } else if (value.hi < group) {
            value.hi = group;
            value.lo = one_more;
        })

    apply {
        index = 18w0 ++ hdr.switchgnn.pool ++ meta.own.worker[6:0]
            ++ hdr.switchgnn.feature_group[GROUP_BITS - 1:0];
        group = 16w0 ++ hdr.switchgnn.feature_group;
        one_more = 0;
        if (meta.outcome == PENDING) {
            one_more = 1;
        }
        accepted = 0;
        RUN_2(claim, index, newer, same)
        if (newer == 1) {
            RUN_0(restart, index)
        } else if (same == 1) {
            RUN(count_one, index, accepted)
        }
        // The first of a group, or nothing is known of an older one.
        if (accepted == 0) {
            accepted = one_more;
        }
        meta.loop.accepted = accepted[15:0];
    }
}
