// Where a packet goes after a pass; as ../loop.p4. Must be applied after Slots, Result and Lanes.
#pragma once

#include "metadata.p4"
#include "../loop.p4"

// Of each job, two copies for its first loop port: a feature, and the harvest of the slot that it
// completed before its last hop. A packet has room for the lanes of one.
const bit<16> FIRST_HARVEST_GROUP = 47;
const bit<16> HARVEST_COPY = 1;

#define ACKNOWLEDGE \
    action acknowledge() { \
        meta.send_ack = 1; \
        meta.loop.leave = leave_t.ACK; \
        standard_metadata.egress_spec = meta.loop.port; \
    }

// A feature on its way, and the harvest.
control Loop(in headers_t hdr,
             inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {

    bit<16> group; bit<16> number;

    action add_first() { group = group + FIRST_HARVEST_GROUP; }

    action go_on() {
        meta.loop.step = step_t.HOP;
        meta.loop.hop = meta.loop.hop + 1;
    }

    action send_sum() {
        meta.loop.leave = leave_t.SUM;
        meta.loop.step = step_t.FINISH;
        meta.loop.tag_lo = meta.partial;
    }

    ACKNOWLEDGE

    // The MISSING, without the part that went back up.
    action pass_down() {
        meta.loop.flags = FLOODS;
        meta.loop.leave = leave_t.WITHOUT_BODY;
        standard_metadata.egress_spec = meta.loop.to;
        standard_metadata.mcast_grp = meta.loop.group;
    }

    JOIN_2(16, join_number_of, number, 13w0, hdr.switchgnn.src_id[LOOP_LANE_BITS - 1:0])

    apply {
        join_number_of();
        group = meta.loop.cell;
        add_first();
        if (meta.loop.step == step_t.FINISH && meta.loop.look_again == 1) {
            pass_down();
        } else if (meta.loop.step == step_t.FINISH) {
            acknowledge();
        } else if (meta.send_sum == 1) {
            if (meta.to_replicas == 1) {
                // The sum returns to the sender, too, and is its acknowledgement.
                if (meta.loop.step == step_t.FIRST && hdr.switchgnn.echo == 1) {
                    meta.loop.flags = SUM_ACKNOWLEDGES;
                }
                standard_metadata.mcast_grp = meta.result_group;
            } else if (meta.loop.step != step_t.HARVEST && hdr.switchgnn.echo == 1) {
                standard_metadata.mcast_grp = meta.result_group + number;
            } else {
                standard_metadata.egress_spec = meta.result_port;
            }
            send_sum();
        } else if (meta.loop.step != step_t.HARVEST) {
            if (meta.last_hop == 0) {
                if (meta.completed == 1) {
                    standard_metadata.mcast_grp = group;
                } else {
                    standard_metadata.egress_spec = meta.loop.lane;
                }
                go_on();
            } else if (hdr.switchgnn.echo == 1) {
                acknowledge();
            }
        }
    }
}

// A repeated feature is acknowledged again; a recall gets the sum, or else MISSING with the count of
// the slot; MISSING from above gets this switch's part of the sum.
control Answer(in headers_t hdr,
               inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    bit<16> group;

    ACKNOWLEDGE

    action send_sum() {
        meta.loop.leave = leave_t.SUM;
        meta.loop.tag_lo = meta.partial;
        standard_metadata.egress_spec = meta.loop.port;
        standard_metadata.mcast_grp = 0;
    }

    // Beside the MISSING, which goes around the loop.
    action send_part() {
        meta.loop.leave = leave_t.SUM;
        meta.loop.tag_lo = meta.partial;
        meta.loop.step = step_t.FINISH;
        meta.loop.flags = 0;
        standard_metadata.mcast_grp = group;
    }

    action miss(leave_t leave) {
        meta.send_missing = 1;
        meta.loop.leave = leave;
    }

    action add() { group = group + meta.result_group; }

    // A fragment whose sum is not complete.
    action wait() {
        standard_metadata.egress_spec = DROPPED;
        standard_metadata.mcast_grp = 0;
    }

    action report() {
        meta.loop.step = step_t.REPORT;
        meta.loop.leave = leave_t.AS_IT_IS;
        meta.loop.to = meta.loop.lane;
        standard_metadata.egress_spec = meta.loop.lane;
    }

    JOIN_2(16, join_group, group, 13w0, hdr.switchgnn.src_id[LOOP_LANE_BITS - 1:0])

    apply {
        join_group();
        add();
        if (meta.outcome == DUPLICATE && hdr.switchgnn.echo == 1) {
            acknowledge();
        } else if (meta.loop.look_again == 1) {
            if (meta.send_sum == 1) {
                send_part();
            } else {
                meta.loop.leave = leave_t.WITHOUT_BODY;
            }
        } else if (meta.outcome == RECALLED) {
            if (meta.send_sum == 1) {
                send_sum();
            } else if (meta.loop.group != 0) {
                miss(leave_t.ASK);
            } else {
                miss(leave_t.MISSING);
            }
        } else if (hdr.switchgnn.kind == kind_t.REDUCE) {
            if (meta.outcome == REDUCE_REPEATED) {
                standard_metadata.mcast_grp = 0;
            }
            if (meta.takes == 0) {
                wait();
                if (meta.outcome == REDUCE_REPEATED) {
                    report();
                }
            }
        }
    }
}
