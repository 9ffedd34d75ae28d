// The path of a frame through a pipe: `apply` is the table of contents. Where a control has the name
// of one of the main program, it is the same file, or does the same.
#pragma once

#include "metadata.p4"
#include "headers.p4"
#include "../job.p4"
#include "../session.p4"
#include "../forward.p4"
#include "../congestion.p4"
#include "admission.p4"
#include "access.p4"
#include "barrier.p4"
#include "dedup.p4"
#include "banks.p4"
#include "body.p4"
#include "loop.p4"

control SwitchIngress(inout headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    WorkerPorts() worker;
    Jobs()      job;
    Session()   session;
    Ranges()    ranges;
    Admission() admission;
    Forward()   forward;
    Notice()    notice;
    TagWindow() tag_window;
    Barrier()   barrier;
    Lookups()   lookups;
    Access()    access;
    Dedup()     dedup;
    Accepted()  accepted;
    Outcome()   outcome;
    Slots()     slots;
    Result()    result;
    Body()      body;
    Lanes()     lanes;
    NoBody()    no_body;
    Loop()      loop;
    Answer()    answer;
    Priority()  priority;


    index_t cell;
    index_t pass_cell;
    // Of each job cell n: passes that made n contributions.
    COUNTER(JOB_CELLS << PASS_BITS, passes)

    bit<1> contributed;
    bit<1> decides;

    action arrive() {
        DROP(standard_metadata)
        meta.outcome = PENDING;
        meta.contribution = hdr.switchgnn.count;
    }

    action measure_pool() { meta.pool_above = meta.pool_above |-| meta.last_pool; }
    action pass_into_loop() { meta.lane = meta.lane + (FIRST_LOOP_PORT - (1 << LOOP_LANE_BITS)); }
    action find_slot() { meta.index = meta.slots.slot0; }
    action find_cell() { meta.index = meta.index + meta.loop.first_slot; }

    action enter() {
        meta.loop.step = step_t.FIRST;
        standard_metadata.egress_spec = meta.lane;
    }

    JOIN_3(9, join_lane, meta.lane, 1w0, meta.own.job, hdr.switchgnn.src_id[LOOP_LANE_BITS - 1:0])
    JOIN_2(8, join_pool, meta.pool_above, 6w0, hdr.switchgnn.pool)
    JOIN_4(16, join_pass_cell, pass_cell, 7w0, meta.own.job, 3w0, contributed)
    JOIN_3(16, join_outcome_cell, cell, 6w0, meta.own.job, meta.outcome)

    apply {
        arrive();
        contributed = 0;
        decides = 0;
        worker.apply(meta, meta.loop.port);
        job.apply(hdr, meta);
        session.apply(hdr, meta);
        join_lane();
        if (meta.own.job == 0) {
            // A `done` of no job, which is answered.
            meta.lane = 1 << LOOP_LANE_BITS;
        }
        pass_into_loop();
        join_pool();
        measure_pool();
        if (meta.loop.step == step_t.ARRIVE) {
            decides = 1;
            ranges.apply(hdr, meta);
            admission.apply(hdr, meta, standard_metadata);
            if (meta.outcome == PENDING) {
                if (!hdr.switchgnn.isValid()) {
                    forward.apply(hdr, meta, standard_metadata);
                } else {
                    enter();
                    if (hdr.barrier.isValid()) {
                        hdr.work.setValid();
                    }
                }
            }
        } else {
            if (meta.loop.step == step_t.FIRST || meta.loop.step == step_t.COLLECT) {
                decides = 1;
            }
            tag_window.apply(hdr, meta);
            if (hdr.barrier.isValid()) {
                barrier.apply(hdr, meta, standard_metadata);
            } else {
                lookups.apply(hdr, meta);
                if (meta.loop.step == step_t.FIRST && meta.outcome == PENDING) {
                    if (hdr.switchgnn.kind == kind_t.NOTICE) {
                        notice.apply(hdr, meta, standard_metadata);
                    } else {
                        access.apply(hdr, meta, standard_metadata);
                    }
                }
                if (meta.loop.step == step_t.FIRST && meta.outcome == PENDING) {
                    dedup.apply(hdr, meta);
                    if (meta.outcome != STALE) {
                        accepted.apply(hdr, meta);
                    }
                }
                if (meta.outcome == PENDING) {
                    if (meta.loop.step != step_t.FINISH) {
                        meta.touches_slots = 1;
                    }
                    if (meta.loop.step == step_t.HARVEST) {
                        meta.looks = 1;
                    } else if (meta.loop.step == step_t.FIRST) {
                        meta.outcome = AGGREGATED;
                    }
                }
                if (meta.touches_slots == 1 && meta.slots.expected0 != 0) {
                    find_slot();
                    find_cell();
                    slots.apply(hdr, meta);
                    contributed = 1;
                }
                if ((meta.outcome == PENDING || meta.outcome == AGGREGATED)
                        && (meta.loop.step == step_t.FIRST || meta.loop.step == step_t.HOP)) {
                    join_pass_cell();
                    COUNT_ONE(passes, pass_cell)
                }
                if (meta.takes == 1) {
                    result.apply(hdr, meta);
                }
                body.apply(hdr, meta);
                lanes.apply(hdr, meta);
                if (meta.unknown_block == 1 && meta.loop.step != step_t.FINISH) {
                    // Its entries are gone.
                } else if (meta.outcome == PENDING || meta.outcome == AGGREGATED) {
                    loop.apply(hdr, meta, standard_metadata);
                } else {
                    answer.apply(hdr, meta, standard_metadata);
                }
            }
            no_body.apply(hdr, meta);
        }
        if (decides == 1 && meta.outcome != PENDING) {
            join_outcome_cell();
            outcome.apply(cell);
        }
        priority.apply(hdr, meta, standard_metadata.priority, meta.loop.dscp);
        if (meta.flood == 1) {
            meta.loop.flags = FLOODS;
        }
        if (!hdr.barrier.isValid()) {
            meta.loop.destination = meta.destination;
        }
        if (meta.loop.leave != leave_t.AS_IT_IS) {
            hdr.work.setInvalid();
        }
        meta.loop.count = meta.count;
        if (meta.mark != 0 && meta.loop.leave == leave_t.SUM) {
            meta.loop.leave = leave_t.MARKED_SUM;
        }
    }
}
