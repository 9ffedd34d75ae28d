// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// How many features of a group have been let through. An acknowledgement carries
// the number, so the sender knows whether all of the group have arrived.
// A number only ever belongs to a newer group than before: a packet of an older
// one, which the network has delayed, changes nothing.
// Must be applied once per packet, on its first pass, after Seen.
#ifndef _ACCEPTED_
#define _ACCEPTED_

#include "headers.p4"
#include "metadata.p4"
#include "sizes.p4"

// A worker sends group g + 32 only when the switch has all of group g.
#define GROUP_BITS 5
#define GROUPS_PER_WORKER (1 << GROUP_BITS)

control Accepted(in headers_t hdr, inout metadata_t meta) {
    register<bit<112>>(MAX_WORKERS * GROUPS_PER_WORKER) groups;  // tag ++ group ++ count

    bit<32> index;
    bit<96> group;
    bit<112> last;

    action count_group() {
        index = ((bit<32>) meta.worker << GROUP_BITS)
            + (bit<32>) hdr.switchgnn.feature_group[GROUP_BITS - 1:0];
        group = meta.tag ++ hdr.switchgnn.feature_group;
        groups.read(last, index);
        meta.loop.accepted = last[111:16] == group ? last[15:0] : 0;
        meta.loop.accepted = meta.loop.accepted + (meta.outcome == AGGREGATED ? 16w1 : 16w0);
        groups.write(index, last[111:16] > group ? last : group ++ meta.loop.accepted);
    }

    // A stale feature is of an older group.
    apply {
        if (meta.outcome != STALE) {
            count_group();
        }
    }
}

#endif
