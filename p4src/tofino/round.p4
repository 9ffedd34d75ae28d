// What a barrier agrees on at the start of a round.
#pragma once

#include "window.p4"

// The largest magnitude of the newest round, and its worker; see ../barrier.p4.
control RoundStart(in headers_t hdr, inout metadata_t meta) {
    REGISTER(JOB_CELLS, largest)   // session ++ round, magnitude
    REGISTER(JOB_CELLS, reporter)  // -, worker

    ALU_3(largest, learn_any,
        one = 0;
        if (value.hi < meta.loop.tag_hi
                || (value.hi == meta.loop.tag_hi && value.lo < hdr.barrier.magnitude)) {
            one = 1;
            value.hi = meta.loop.tag_hi;
            value.lo = hdr.barrier.magnitude;
        }
        two = value.hi;
        three = value.lo;)
    ALU_3(largest, learn_first,
        one = 0;
        if (value.hi < meta.loop.tag_hi) {
            one = 1;
            value.hi = meta.loop.tag_hi;
            value.lo = hdr.barrier.magnitude;
        }
        two = value.hi;
        three = value.lo;)
    READ(largest, read_largest)
    ALU_0(reporter, write_reporter,
        value.lo = hdr.done.first;)
    ALU(reporter, read_reporter,
        one = value.lo;)

    action learn() {
        RUN_3(learn_any, meta.loop.cell, meta.work.learned, meta.work.newest_round,
              meta.work.largest)
    }

    // The round is closed to others, except of a leaf's switch above, which knows all workers.
    action learn_round() {
        RUN_3(learn_first, meta.loop.cell, meta.work.learned, meta.work.newest_round,
              meta.work.largest)
    }

    action read() { RUN_2(read_largest, meta.loop.cell, meta.work.newest_round, meta.work.largest) }

    table magnitude {
        key = {
            meta.loop.step: ternary; meta.outcome: ternary; hdr.done.above: ternary;
            meta.closed: ternary; hdr.switchgnn.block_id: ternary; meta.above_port: ternary;
        }
        actions = { learn; learn_round; read; NoAction; }
        const default_action = NoAction;
        SIZE(5)
        const entries = {
            (step_t.FIRST, PENDING, 0, 0, _, _): learn();
            (step_t.FIRST, PENDING, 0, _, 0, _): learn_round();
            (step_t.FIRST, PENDING, 0, _, _, 0): learn_round();
            (step_t.FIRST, PENDING, 0, _, _, _): learn();
            (_, _, _, _, _, _): read();
        }
    }

    action differ() {
        meta.work.round_differs = meta.work.newest_round ^ meta.loop.tag_hi;
        meta.work.magnitude_differs = meta.work.largest ^ hdr.barrier.magnitude;
    }

    action refuse() { meta.outcome = WRONG_MAGNITUDE; }

    table agreement {
        key = {
            hdr.done.above: ternary; meta.closed: ternary; hdr.switchgnn.block_id: ternary;
            meta.work.round_differs: ternary; meta.work.magnitude_differs: ternary;
            meta.above_port: ternary;
        }
        actions = { refuse; NoAction; }
        const default_action = NoAction;
        SIZE(4)
        const entries = {
            (1, _, _, _, _, _): refuse();
            (_, _, 0, _, _, _): NoAction();
            (_, _, _, 0, 0, _): NoAction();
            (_, 1, _, 0, _, 0): refuse();
        }
    }

    apply {
        meta.work.learned = 0;
        magnitude.apply();
        meta.work.reporter = hdr.done.first;
        if (meta.work.learned == 1) {
            RUN_0(write_reporter, meta.loop.cell)
        } else {
            RUN(read_reporter, meta.loop.cell, meta.work.reporter)
        }
        differ();
        if (meta.loop.step == step_t.FIRST && meta.outcome == PENDING) {
            agreement.apply();
        }
    }
}
