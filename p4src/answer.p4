// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// What the switch answers to a packet that adds nothing to slots. A repeated feature is
// acknowledged again; a recall gets the sum, or else MISSING with the count of the slot; a
// MISSING from above gets the part of the sum that this switch has.
// Must be applied after Banks and Result. Loop answers a packet that adds to slots.
#ifndef _ANSWER_
#define _ANSWER_

#include "headers.p4"
#include "metadata.p4"
#include "sizes.p4"
#include "payload.p4"

control Answer(inout headers_t hdr,
               inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    NoPayload() no_payload;

    action acknowledge() {
        meta.send_ack = 1;
        standard_metadata.egress_spec = meta.loop.port;
    }

    action send_again() {
        standard_metadata.egress_spec = meta.result_port;
    }

    action send_missing() {
        meta.send_missing = 1;
        standard_metadata.egress_spec = meta.loop.port;
    }

    // The other leaves are asked for their parts.
    action recall_parts() {
        standard_metadata.mcast_grp = ALL_WORKERS_GROUP;
    }

    // The part goes up. The MISSING goes around the loop, and down from there where the
    // acknowledgement of a feature would go.
    action send_part() {
        standard_metadata.mcast_grp = meta.result_group
            + (bit<16>) hdr.switchgnn.src_id[LOOP_LANE_BITS - 1:0];
        meta.loop.pass_number = 1;
        meta.loop.finished = 1;
        meta.loop.port = meta.destination_port;
    }

    // The MISSING alone; Passage has set its port.
    action send_missing_down() {
        meta.send_ack = 1;
    }

    apply {
        if (meta.outcome == DUPLICATE && hdr.switchgnn.echo == 1) {
            acknowledge();
        } else if (meta.outcome == RECALLED) {
            if (meta.send_sum == 1) {
                send_again();
            } else if (meta.from_above == 0) {
                send_missing();
                if (meta.leaves_below == 1 && hdr.switchgnn.resend == 1) {
                    recall_parts();
                }
            }
        } else if (meta.look_again == 1) {
            if (meta.send_sum == 1) {
                send_part();
                no_payload.apply(hdr);
            } else {
                send_missing_down();
            }
        }
    }
}

#endif
