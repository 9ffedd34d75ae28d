// Where a packet goes after a pass. Result routes a complete sum; then Loop applies to packets that
// add to slots, Answer to others. Must be applied after Banks.
#pragma once

#include "metadata.p4"

// The path of a complete sum: the destination vertex, the port of its worker, and the first of
// the groups {that port, a loop port}, one per loop port. A leaf's part of a sum goes to a
// spine, as the feature of a partial sum.
control Result(in headers_t hdr, inout metadata_t meta) {
    // worker, place, sums: whose it is, its place among those of that worker in the block, and
    // how many these are.
    action set_result(vertex_t vertex, port_t port, bit<16> group,
                      worker_t worker, bit<16> place, bit<16> sums) {
        meta.destination = vertex;
        meta.result_port = port;
        meta.result_group = group;
        meta.result_worker = worker;
        meta.result_place = place;
        meta.result_sums = sums;
        meta.send_sum = 1;
    }

    action set_partial(vertex_t vertex, vertex_t source, port_t port, bit<16> group) {
        meta.destination = vertex;
        meta.partial = source;
        meta.result_port = port;
        meta.result_group = group;
        meta.send_sum = 1;
    }

    // The sum of a vertex cut, for all that contribute to it.
    action set_replicas(vertex_t vertex, bit<16> group) {
        meta.destination = vertex;
        meta.result_group = group;
        meta.to_replicas = 1;
        meta.send_sum = 1;
    }

    // Complete sums without an entry.
    COUNTER(1, unrouted)

    action no_result() { unrouted.count(0); }

    table result {
        key = {
            meta.loop.block: exact @name("block_id"); meta.bank: exact @name("bank");
            meta.slot: exact @name("slot");
        }
        actions = { set_result; set_partial; set_replicas; @defaultonly no_result; }
        const default_action = no_result;
        size = MAX_RESULTS;
    }

    apply { result.apply(); }
}

#ifndef TOFINO
// The rest of the banks, the next hop, or the end. Chooses between the result port, a loop
// port, and the group of both.
control Loop(in headers_t hdr,
             inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    bit<1> again;
    port_t lane;

    action go_on() {
        again = 0;
        meta.loop.pass_number = meta.loop.pass_number + 1;
        if (meta.loop.finished == 1) {
            meta.send_ack = 1;
        } else if (meta.completed == 1 && meta.bank < meta.last_bank) {
            again = 1;
            meta.loop.next_bank = meta.bank + 1;
        } else if (meta.last_hop == 0) {
            again = 1;
            meta.loop.hop = meta.loop.hop + 1;
            meta.loop.next_bank = 0;
        } else {
            // When a sum leaves in this pass, the acknowledgement waits for the next one; the sum
            // of a vertex cut returns to the sender, too, and is one.
            meta.loop.finished = 1;
            again = meta.send_sum & hdr.switchgnn.echo & ~meta.to_replicas;
            meta.send_ack = ~meta.send_sum & hdr.switchgnn.echo;
        }
        lane = (port_t) hdr.switchgnn.src_id[LOOP_LANE_BITS - 1:0];
        if (meta.to_replicas == 1) {
            standard_metadata.mcast_grp = meta.result_group;
        } else if (meta.send_sum == 1 && again == 1) {
            standard_metadata.mcast_grp = meta.result_group + (bit<16>) lane;
        } else if (meta.send_sum == 1) {
            standard_metadata.egress_spec = meta.result_port;
        } else if (again == 1) {
            standard_metadata.egress_spec = meta.loop.first_port + lane;
        } else if (meta.send_ack == 1) {
            standard_metadata.egress_spec = meta.loop.port;
        }
    }

    apply { go_on(); }
}

// A repeated feature is acknowledged again; a recall gets the sum, or else MISSING with the
// count of the slot; a MISSING from above gets this switch's part of the sum.
control Answer(inout headers_t hdr,
               inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    NoPayload() no_payload;

    // Asks the other leaves for their parts.
    action recall_parts() { standard_metadata.mcast_grp = GROUP_OF(meta, WORKERS_GROUP); }

    // The part goes up. The MISSING goes around the loop, and from there down like the
    // acknowledgement of a feature.
    action send_part() {
        standard_metadata.mcast_grp = meta.result_group
            + (bit<16>) hdr.switchgnn.src_id[LOOP_LANE_BITS - 1:0];
        meta.loop.pass_number = 1;
        meta.loop.finished = 1;
        meta.loop.port = meta.destination_port;
    }

    apply {
        if (meta.outcome == DUPLICATE && hdr.switchgnn.echo == 1) {
            meta.send_ack = 1;
            standard_metadata.egress_spec = meta.loop.port;
        } else if (meta.outcome == RECALLED) {
            if (meta.send_sum == 1) {
                standard_metadata.egress_spec = meta.loop.port;
            } else if (meta.from_above == 0) {
                meta.send_missing = 1;
                standard_metadata.egress_spec = meta.loop.port;
                if (meta.leaves_below == 1 && hdr.switchgnn.resend == 1) {
                    recall_parts();
                }
            }
        } else if (meta.look_again == 1) {
            if (meta.send_sum == 0) {
                // The MISSING alone; Passage has set its port.
                meta.send_ack = 1;
            } else {
                meta.flood = 0;
                // In a group, the copy for the switch above is the part, all others the MISSING.
                if (meta.destination_group == 0) {
                    send_part();
                    no_payload.apply(hdr);
                }
            }
        }
    }
}

#endif

// The class of a packet that leaves. Packets without numbers overtake those with: a worker that
// waits for an acknowledgement behind its own sums sends nothing meanwhile. The kind decides, and the
// DSCP that arrives can only lower the class: an all-reduce, and ordinary traffic that asks for it,
// leave the line to exchanges.
//
// What the switch answers is ahead of what other workers ask, so that a worker which floods the
// others with questions cannot delay their acknowledgements.
const bit<3> PRIORITY_LATE = 0;
const bit<3> PRIORITY_EARLY = 1;
const bit<3> PRIORITY_NUMBERS = 2;
const bit<3> PRIORITY_QUESTIONS = 3;
const bit<3> PRIORITY_ANSWERS = 4;

// Must be applied last in ingress, when it is decided what leaves.
control Priority(in headers_t hdr, in metadata_t meta, out bit<3> priority, out bit<6> dscp) {
    ONE_ACTION(choose,
        priority = PRIORITY_NUMBERS;
        dscp = DSCP_DEFAULT;
        if (!hdr.switchgnn.isValid()) {
            if (hdr.ipv4.isValid() && hdr.ipv4.dscp == DSCP_LATE) {
                priority = PRIORITY_LATE;
            } else if (hdr.ipv4.isValid() && hdr.ipv4.dscp == DSCP_EARLY) {
                priority = PRIORITY_EARLY;
            }
        } else if (hdr.switchgnn.kind == kind_t.REDUCE || hdr.switchgnn.kind == kind_t.REDUCED) {
            // A sum has the class of the part that completes it.
            priority = PRIORITY_EARLY;
            dscp = DSCP_EARLY;
            if (hdr.ipv4.dscp == DSCP_LATE) {
                priority = PRIORITY_LATE;
                dscp = DSCP_LATE;
            }
        } else if (meta.send_sum == 0) {
            if (meta.send_ack == 1 || meta.send_missing == 1
                    || hdr.switchgnn.kind == kind_t.DONE
                    || hdr.switchgnn.kind == kind_t.ADVANCE
                    || hdr.switchgnn.kind == kind_t.WAITING
                    || hdr.switchgnn.kind == kind_t.MISSING) {
                priority = PRIORITY_ANSWERS;
                dscp = DSCP_CONTROL;
            } else if (!HAS_NUMBERS(hdr.switchgnn.kind)) {
                priority = PRIORITY_QUESTIONS;
                dscp = DSCP_CONTROL;
            }
        }
    )
}
