// A packet that a port received, in any pipe: all that needs no state is found and decided here, so that
// the pipe of the loop has its stages for registers.
#pragma once

#include "metadata.p4"
#include "headers.p4"
#include "../job.p4"
#include "../session.p4"
#include "../forward.p4"
#include "admission.p4"
#include "access.p4"
#include "done.p4"
#include "reduce.p4"

control Arrival(inout headers_t hdr,
                inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    Ranges()      ranges;
    Admission()   admission;
    Forward()     forward;
    Done()        done;
    Reduce()      reduce;
    Access()      access;

    port_t lane;

    action arrive() {
        DROP(standard_metadata)
        meta.outcome = PENDING;
        meta.decides = 1;
        meta.loop.to = DROPPED;
        meta.loop.group = 0;
    }

    action find_own() {
        meta.loop.cell = meta.own.cell;
        meta.loop.pool = meta.own.pool;
        meta.loop.worker = meta.own.worker;
        meta.loop.any_tag = meta.any_tag;
        meta.loop.lane = lane;
    }

    action pass_into_loop() { lane = lane + (FIRST_LOOP_PORT - (1 << LOOP_LANE_BITS)); }

    action pass_down() {
        hdr.done.setInvalid();
        standard_metadata.mcast_grp = meta.loop.group;
    }

    // With what comes next, to the windows.
    action take_down() {
        meta.loop.step = step_t.COLLECT;
        standard_metadata.egress_spec = meta.loop.to;
    }

    // Decided, but not yet counted.
    action enter(port_t port) {
        meta.loop.verdict = meta.outcome;
        meta.loop.step = step_t.FIRST;
        meta.outcome = PENDING;
        standard_metadata.egress_spec = port;
        standard_metadata.mcast_grp = 0;
    }

    JOIN_2(9, join_set_port, meta.set_port, FIRST_SET_PORT[8:5], meta.own.job)
    JOIN_3(9, join_lane, lane, 1w0, meta.own.job, hdr.switchgnn.src_id[LOOP_LANE_BITS - 1:0])

    apply {
        arrive();
        ranges.apply(hdr, meta);
        join_lane();
        join_set_port();
        if (meta.own.job == 0) {
            // A `done` of no job, which is answered.
            lane = 1 << LOOP_LANE_BITS;
        }
        pass_into_loop();
        find_own();
        if (meta.any_tag == 1 && meta.above_port != 0) {
            meta.loop.no_window = 1;
        }
        admission.apply(hdr, meta, standard_metadata);
        if (meta.outcome == PENDING) {
            if (!hdr.switchgnn.isValid()) {
                forward.apply(hdr, meta, standard_metadata);
            } else if (IS_REDUCE(hdr.switchgnn)) {
                reduce.apply(hdr, meta, standard_metadata);
            } else {
                if (hdr.barrier.isValid()) {
                    done.apply(hdr, meta);
                } else {
                    access.apply(hdr, meta, standard_metadata);
                }
                if (hdr.switchgnn.kind == kind_t.WAITING) {
                    pass_down();
                } else if (hdr.switchgnn.kind == kind_t.ADVANCE) {
                    take_down();
                } else if (!hdr.barrier.isValid()) {
                    enter(meta.loop.lane);
                } else if (meta.outcome != WRONG_PORT) {
                    // One that speaks for another worker gets no answer.
                    enter(meta.loop.to);
                }
            }
        }
        if (meta.flood == 1) {
            meta.loop.flags = FLOODS;
        }
    }
}
