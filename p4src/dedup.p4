// Duplicates, and the number of features of a group that were accepted.
// Must be applied once per packet, on its first pass, Dedup before Accepted.
#pragma once

#include "metadata.p4"

// Accepts each source once per unit, whatever the network repeats or reorders (invariants 1 and
// 3). In a pool, the tags of a source only grow, so the last one suffices.
control Dedup(in headers_t hdr, inout metadata_t meta) {
    register<tag_t>(MAX_POOLS * MAX_SOURCES) last_tag;

    bit<32> index;
    tag_t last;

    action look_and_remember() {
        index = (bit<32>) hdr.switchgnn.pool * MAX_SOURCES + meta.source_index;
        last_tag.read(last, index);
        last_tag.write(index, meta.tag > last ? meta.tag : last);
    }

    apply {
        look_and_remember();
        if (meta.tag == last) {
            meta.outcome = DUPLICATE;
        } else if (meta.tag < last) {
            meta.outcome = STALE;
        }
    }
}

// Of a unit, a worker sends group g + 32 only when the switch has all of group g.
#define GROUP_BITS 5
#define GROUPS_PER_WORKER (1 << GROUP_BITS)

// An acknowledgement carries the number, which shows the sender whether the whole group has
// arrived. A delayed packet of an older group changes nothing.
control Accepted(in headers_t hdr, inout metadata_t meta) {
    register<bit<112>>(MAX_POOLS * MAX_WORKERS * GROUPS_PER_WORKER) groups;  // tag ++ group ++ count

    bit<32> index;
    bit<96> group;
    bit<112> last;

    action count_group() {
        index = ((((bit<32>) hdr.switchgnn.pool * MAX_WORKERS) + meta.own.worker)
                 << GROUP_BITS)
            + (bit<32>) hdr.switchgnn.feature_group[GROUP_BITS - 1:0];
        group = meta.tag ++ hdr.switchgnn.feature_group;
        groups.read(last, index);
        meta.loop.accepted = last[111:16] == group ? last[15:0] : 0;
        meta.loop.accepted = meta.loop.accepted + (meta.outcome == PENDING ? 16w1 : 16w0);
        groups.write(index, last[111:16] > group ? last : group ++ meta.loop.accepted);
    }

    // A stale feature belongs to an older group.
    apply {
        if (meta.outcome != STALE) {
            count_group();
        }
    }
}
