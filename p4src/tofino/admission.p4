// What a port may bring in, as Admission in ../session.p4: frames of our protocol with whole groups of
// 32-bit lanes, and only the kinds that workers or a switch above send.
#pragma once

#include "metadata.p4"

// The tag, the block of the job, and the first slot of the pool.
control Ranges(in headers_t hdr, inout metadata_t meta) {

    index_t twice;
    bit<16> beyond;

    action measure() {
        beyond = hdr.switchgnn.block_id |-| meta.last_block;
        meta.pool_above = meta.pool_above |-| meta.last_pool;
    }

    action add_one() { meta.first_slot = meta.first_slot + meta.pool_slots; }
    action add_two() { meta.first_slot = meta.first_slot + twice; }

    JOIN_4(32, join_tag, meta.loop.tag_lo, hdr.switchgnn.fragment, hdr.switchgnn.block_id,
           hdr.switchgnn.pool, hdr.switchgnn.width)
    JOIN_2(8, join_pool, meta.pool_above, 6w0, hdr.switchgnn.pool)
    JOIN_3(32, join_session, meta.session_start, meta.session[7:0], 8w0, 16w0)

    apply {
        meta.loop.tag_hi = hdr.switchgnn.turn;
        join_tag();
        join_session();
        join_pool();
        twice = meta.pool_slots[14:0] ++ 1w0;
        measure();
        if (hdr.switchgnn.pool[0:0] == 1) {
            add_one();
        }
        if (hdr.switchgnn.pool[1:1] == 1) {
            add_two();
        }
        meta.loop.first_slot = meta.first_slot;
        meta.loop.block = meta.block;
        if (beyond != 0) {
            meta.loop.block = 0;
        }
    }
}

#define FITS(n) (BITS_32, n - 1, BARE_LENGTH + 32 * n, _): fit();

#define SOUND(job, kind, wider, pool, above) \
    (_, _, _, _, _, job, kind, SWITCHGNN_VERSION, 1, wider, pool, above): NoAction();
#define UNSOUND(kind) (_, _, _, _, _, _, kind, _, _, _, _, _): refuse(MALFORMED);

control Admission(in headers_t hdr,
                  inout metadata_t meta,
                  in standard_metadata_t standard_metadata) {
    bit<1>  failed;
    bit<1>  fits;
    bit<32> above;
    bit<8>  wider;
    bit<32> other_session;

    action compare() {
        above = hdr.barrier.magnitude |-| LARGEST_FLOAT;
        other_session = hdr.switchgnn.turn ^ meta.session_start;
        wider = wider |-| meta.width;
    }

    action mask() { other_session = other_session & 0xff000000; }
    action fit() { fits = 1; }

    table lengths {
        key = {
            hdr.switchgnn.bits: ternary; hdr.switchgnn.width: ternary; hdr.ipv4.total_len: exact;
            hdr.switchgnn.kind: ternary;
        }
        actions = { fit; NoAction; }
        const default_action = NoAction;
        SIZE(9)
        const entries = {
            EACH_NUMBER(FITS)
            (NO_BODY, _, BARE_LENGTH, kind_t.FEATURE): fit();
        }
    }

    action refuse(outcome_t outcome) { meta.outcome = outcome; }

    // Ordinary traffic only as it is; of ours, whole frames with their parts in bounds.
    table soundness {
        key = {
            failed: ternary; hdr.ethernet.ether_type: ternary; hdr.ipv4.isValid(): ternary;
            hdr.ipv4.protocol: ternary; hdr.switchgnn.isValid(): ternary; meta.own.job: ternary;
            hdr.switchgnn.kind: ternary; hdr.switchgnn.version: ternary; fits: ternary;
            wider: ternary; hdr.switchgnn.pool: ternary; above: ternary;
        }
        actions = { refuse; NoAction; }
        const default_action = refuse(MALFORMED);
        SIZE(21)
        const entries = {
            (1, _, _, _, _, _, _, _, _, _, _, _): refuse(MALFORMED);
            (_, ETHERTYPE_VLAN, _, _, _, _, _, _, _, _, _, _): refuse(MALFORMED);
            (_, ETHERTYPE_SERVICE_VLAN, _, _, _, _, _, _, _, _, _, _): refuse(MALFORMED);
            (_, _, true, PROTOCOL_SWITCHGNN, false, _, _, _, _, _, _, _): refuse(MALFORMED);
            (_, _, _, _, false, _, _, _, _, _, _, _): NoAction();
            SOUND(0, kind_t.DONE, _, _, 0)
            (_, _, _, _, _, 0, kind_t.DONE, _, _, _, _, _): refuse(MALFORMED);
            (_, _, _, _, _, 0, _, _, _, _, _, _): refuse(NO_JOB);
            SOUND(_, kind_t.DONE, 0, _, 0)
            SOUND(_, kind_t.ADVANCE, 0, _, 0)
            SOUND(_, kind_t.WAITING, 0, _, 0)
            SOUND(_, kind_t.REDUCE, _, 0, _)
            SOUND(_, kind_t.REDUCED, _, 0, _)
            SOUND(_, kind_t.REDUCING, _, 0, 0)
            UNSOUND(kind_t.DONE) UNSOUND(kind_t.ADVANCE) UNSOUND(kind_t.WAITING)
            UNSOUND(kind_t.REDUCE) UNSOUND(kind_t.REDUCED) UNSOUND(kind_t.REDUCING)
            SOUND(_, _, 0, _, _)
        }
    }

    // That a worker sends, or a switch above.
    table kinds {
        key = {
            hdr.switchgnn.kind: ternary; meta.from_above: ternary; hdr.switchgnn.resend: ternary;
        }
        actions = { refuse; NoAction; }
        const default_action = refuse(UNKNOWN_KIND);
        SIZE(14)
        const entries = {
            (kind_t.FEATURE, 0, _): NoAction();
            (kind_t.FEATURE, _, 1): NoAction();
            (kind_t.DONE, 0, _): NoAction();
            (kind_t.RECALL, _, _): NoAction();
            (kind_t.FETCH, _, _): NoAction();
            (kind_t.NOTICE, _, _): NoAction();
            (kind_t.REDUCE, 0, _): NoAction();
            (kind_t.REDUCED, _, 1): NoAction();
            (kind_t.REDUCED, 1, _): NoAction();
            (kind_t.REDUCING, _, _): NoAction();
            (kind_t.SUM, 1, _): NoAction();
            (kind_t.MISSING, 1, _): NoAction();
            (kind_t.ADVANCE, 1, _): NoAction();
            (kind_t.WAITING, 1, _): NoAction();
        }
    }

    JOIN_2(8, join_width, wider, 3w0, hdr.switchgnn.width)

    apply {
        fits = 0;
        join_width();
        compare();
        mask();
        if (HAS_NUMBERS(hdr.switchgnn.kind)) {
            lengths.apply();
        } else {
            fits = 1;
        }
        failed = 0;
        if (PARSER_FAILED(standard_metadata) || standard_metadata.checksum_error == 1) {
            failed = 1;
        }
        soundness.apply();
        if (meta.outcome == PENDING && hdr.switchgnn.isValid()) {
            kinds.apply();
            if (meta.outcome == PENDING && other_session != 0) {
                if (hdr.switchgnn.kind == kind_t.DONE) {
                    meta.other_session = 1;
                } else {
                    meta.outcome = WRONG_SESSION;
                }
            }
        }
    }
}
