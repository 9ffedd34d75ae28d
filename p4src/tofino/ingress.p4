// The path of a frame through a pipe: each `apply` is a table of contents. Where a control has the name
// of one of the main program, it is the same file, or does the same.
#pragma once

#include "metadata.p4"
#include "headers.p4"
#include "../fanout.p4"
#include "arrival.p4"
#include "barrier.p4"
#include "dedup.p4"
#include "banks.p4"
#include "body.p4"
#include "loop.p4"

// In a pipe of ports.
control Port(inout headers_t hdr,
             inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    WorkerPorts()  worker;
    Jobs()         job;
    Session()      session;
    Tier()         tier;
    Arrival()      arrival;
    Barrier()      barrier;
    Contributors() contributors;
    Collected()    collected;
    Heartbeat()    heartbeat;
    Report()       report;
    Conclusion()   conclusion;

    apply {
        worker.apply(meta, meta.loop.port);
        job.apply(hdr, meta);
        session.apply(hdr, meta);
        tier.apply(meta);
        if (meta.loop.step == step_t.ARRIVE) {
            arrival.apply(hdr, meta, standard_metadata);
        } else {
            if (IS_REDUCE(hdr.switchgnn)) {
                contributors.apply(hdr, meta, standard_metadata);
            } else {
                barrier.apply(hdr, meta, standard_metadata);
            }
            if (meta.work.looks == 1) {
                collected.apply(meta);
            }
            if (meta.work.hears == 1) {
                heartbeat.apply(meta);
            }
            if (IS_REDUCE(hdr.switchgnn)) {
                report.apply(hdr, meta, standard_metadata);
            } else {
                conclusion.apply(hdr, meta, standard_metadata);
            }
        }
    }
}

// In the pipe of the loop.
control Pass(inout headers_t hdr,
             inout metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    TagWindow() tag_window;
    Fanout()    fanout;
    Dedup()     dedup;
    Accepted()  accepted;
    Use()       use;
    Slots()     slots;
    Result()    result;
    Body()      body;
    Lanes()     lanes;
    NoBody()    no_body;
    Loop()      loop;
    Answer()    answer;

    action come_around() {
        DROP(standard_metadata)
        meta.outcome = PENDING;
        meta.contribution = hdr.switchgnn.count;
        meta.mark = 0;
        meta.loop.marked = 0;
        meta.newer = 0;
        meta.same = 0;
    }

    // Of a packet that names its destination.
    action take_own_slot() {
        meta.slots.slot0 = meta.loop.slot;
        meta.slots.expected0 = meta.loop.expected;
        meta.last_hop = 1;
    }

    // A `done`, that moves the other window, too.
    action close() {
        meta.loop.step = step_t.CLOSE;
        standard_metadata.egress_spec = meta.loop.to;
    }

    // To block 0 of the next round.
    action start_round() { meta.loop.tag_lo = meta.loop.tag_lo & POOL_MASK; }

    apply {
        come_around();
        if (hdr.switchgnn.ecn == 1) {
            meta.mark = 1;
        }
        if (meta.loop.step == step_t.FIRST) {
            meta.decides = 1;
        }
        if (meta.loop.plain == 1) {
            fanout.apply(hdr, meta);
        } else {
            take_own_slot();
        }
        tag_window.apply(hdr, meta, standard_metadata);
        if (meta.loop.step == step_t.MOVE) {
            close();
            if (hdr.switchgnn.echo == 1) {
                start_round();
            }
        } else {
            if (meta.loop.step == step_t.FIRST && meta.outcome == PENDING) {
                dedup.apply(hdr, meta);
                if (meta.newer == 1 || meta.same != 0) {
                    accepted.apply(hdr, meta);
                }
            }
            use.apply(hdr, meta);
            body.apply(hdr, meta);
            if (meta.touches_slots == 1 && meta.slots.expected0 != 0) {
                slots.apply(hdr, meta);
            }
            if (meta.takes == 1 && hdr.switchgnn.kind != kind_t.REDUCE) {
                result.apply(hdr, meta);
            }
            lanes.apply(hdr, meta);
            if (meta.unknown_block == 1 && meta.loop.step != step_t.FINISH) {
                // Its entries are gone.
            } else if (meta.outcome == PENDING || meta.outcome == AGGREGATED) {
                loop.apply(hdr, meta, standard_metadata);
            } else {
                answer.apply(hdr, meta, standard_metadata);
            }
            meta.loop.destination = meta.destination;
        }
        no_body.apply(hdr, meta);
        meta.loop.count = meta.count;
        if (meta.mark != 0 && meta.takes == 1) {
            meta.loop.marked = 1;
        }
    }
}

// After either of them.
control Departure(in headers_t hdr,
                  inout metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    Outcome()  outcome;
    Priority() priority;

    index_t cell;

    JOIN_3(16, join_cell, cell, 6w0, meta.loop.cell[4:0], meta.outcome)

    apply {
        if (meta.decides == 1 && meta.outcome != PENDING) {
            join_cell();
            outcome.apply(cell);
        }
        priority.apply(hdr, meta, standard_metadata.priority, meta.loop.dscp);
    }
}
