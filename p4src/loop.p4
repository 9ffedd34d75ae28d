// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// What follows a pass of a packet that adds to slots: the rest of the banks, the next
// hop, or the end. Chooses between the result port, a loop port, and the group of both.
// Must be applied after Banks and Result.
#ifndef _LOOP_
#define _LOOP_

#include "headers.p4"
#include "metadata.p4"
#include "sizes.p4"

control Loop(in headers_t hdr,
             inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    bit<1> again;
    bit<9> lane;

    action rest_of_banks() {
        again = 1;
        meta.loop.next_bank = meta.bank + 1;
    }

    action next_hop() {
        again = 1;
        meta.loop.hop = meta.loop.hop + 1;
        meta.loop.next_bank = 0;
    }

    // An acknowledgement must wait for the next pass when a sum leaves in this.
    action finish() {
        meta.loop.finished = 1;
        again = meta.send_sum & hdr.switchgnn.echo;
        meta.send_ack = ~meta.send_sum & hdr.switchgnn.echo;
    }

    apply {
        meta.loop.pass_number = meta.loop.pass_number + 1;
        if (meta.loop.finished == 1) {
            again = 0;
            meta.send_ack = 1;
        } else if (meta.completed == 1 && meta.bank < meta.last_bank) {
            rest_of_banks();
        } else if (meta.last_hop == 0) {
            next_hop();
        } else {
            finish();
        }
        lane = (bit<9>) hdr.switchgnn.src_id[LOOP_LANE_BITS - 1:0];
        if (meta.send_sum == 1 && again == 1) {
            standard_metadata.mcast_grp = meta.result_group + (bit<16>) lane;
        } else if (meta.send_sum == 1) {
            standard_metadata.egress_spec = meta.result_port;
        } else if (again == 1) {
            standard_metadata.egress_spec = FIRST_LOOP_PORT + lane;
        } else if (meta.send_ack == 1) {
            standard_metadata.egress_spec = meta.loop.port;
        }
    }
}

#endif
