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

control Admission(in headers_t hdr,
                  inout metadata_t meta,
                  in standard_metadata_t standard_metadata) {
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

    action refuse() { meta.outcome = UNKNOWN_KIND; }

    // That a worker sends, or a switch above.
    table kinds {
        key = {
            hdr.switchgnn.kind: ternary; meta.from_above: ternary; hdr.switchgnn.resend: ternary;
        }
        actions = { refuse; NoAction; }
        const default_action = refuse;
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
        if (PARSER_FAILED(standard_metadata) || standard_metadata.checksum_error == 1
                || hdr.ethernet.ether_type == ETHERTYPE_VLAN
                || hdr.ethernet.ether_type == ETHERTYPE_SERVICE_VLAN) {
            meta.outcome = MALFORMED;
        } else if (hdr.ipv4.isValid() && hdr.ipv4.protocol == PROTOCOL_SWITCHGNN
                    && !hdr.switchgnn.isValid()) {
            meta.outcome = MALFORMED;
        } else if (hdr.switchgnn.isValid()) {
            if (meta.own.job == 0 && hdr.switchgnn.kind != kind_t.DONE) {
                meta.outcome = NO_JOB;
            } else if (hdr.switchgnn.version != SWITCHGNN_VERSION || fits == 0) {
                meta.outcome = MALFORMED;
            } else if (wider != 0 && meta.own.job != 0 && !IS_REDUCE(hdr.switchgnn)) {
                meta.outcome = MALFORMED;
            } else if (IS_REDUCE(hdr.switchgnn) && hdr.switchgnn.pool != 0) {
                meta.outcome = MALFORMED;
            } else if (hdr.barrier.isValid() && above != 0) {
                meta.outcome = MALFORMED;
            } else {
                kinds.apply();
            }
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
