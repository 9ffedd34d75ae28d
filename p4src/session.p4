// What the controller has set for a job: the install that the switch serves, and its tier among
// several switches.
#pragma once

#include "metadata.p4"

// Each install has a higher session number, which makes everything older in the registers
// stale: P4Runtime cannot clear registers on BMv2.
control Session(in headers_t hdr, inout metadata_t meta) {
    // members: one bit for every worker of the plan.
    // magnitude_limit: the largest magnitude, as float32 bits, that a worker may report.
    // width: of the slots; no frame may be wider.
    // rows: of bundles.
    // any_tag: the switch may have lost its state in the middle of this session.
    // last_pool, pool_slots: the number of the last pool, and the slots of each in a bank.
    // reduces: contributions to a sum of an all-reduce, at a leaf those of its own workers; 0: none.
    action set_session(bit<16> session, bit<32> plan, worker_set_t members,
                       bit<32> magnitude_limit, width_t width, rows_t rows, bit<1> any_tag,
                       pool_t last_pool, bit<32> pool_slots, count_t reduces) {
        meta.session = session;
        meta.plan = plan;
        meta.members = members;
        meta.magnitude_limit = magnitude_limit;
        meta.any_tag = any_tag;
        meta.reduces = reduces;
#ifdef TOFINO
        meta.width = (bit<8>) width;
        meta.last_pool = (bit<8>) last_pool;
        meta.rows = rows;
        meta.pool_slots = (index_t) pool_slots;
#else
        meta.width = width;
        meta.last_pool = last_pool;
        meta.loop.rows = rows;
        meta.loop.first_slot = meta.loop.first_slot + (hdr.switchgnn.pool[0:0] == 1 ? pool_slots : 0)
            + (hdr.switchgnn.pool[1:1] == 1 ? pool_slots << 1 : 0);
#endif
    }

    table session {
        key = { meta.own.job: exact @name("job"); }
        actions = { set_session; @defaultonly NoAction; }
        const default_action = NoAction;
        size = MAX_JOBS;
    }

    apply { session.apply(); }
}

// A leaf has workers below and spines above. A spine has leaves below and treats them as
// workers that send partial sums. The default is a single switch.
control Tier(inout metadata_t meta) {
    // above: the port to the switch that collects the barrier of all.
    // number: the id of this switch there.
    action set_tier(port_t above, bit<32> number, worker_set_t elsewhere, bit<1> leaves) {
        meta.above_port = above;
        meta.switch_number = number;
        meta.elsewhere = elsewhere;
        meta.leaves_below = leaves;
    }

    table tier {
        key = { meta.own.job: exact @name("job"); }
        actions = { set_tier; @defaultonly NoAction; }
        const default_action = NoAction;
        size = MAX_JOBS;
    }

    apply { tier.apply(); }
}

#ifndef TOFINO
// A port may bring in whole frames with a right checksum, and of our own kinds only those that
// workers send, or a switch above. A packet of our protocol in a fragment, with options or
// after a VLAN tag, which a host's kernel removes, would be forwarded like ordinary traffic, and a
// host might take it for one of the switch. A packet of another session is left over from an
// earlier install, or its worker does not know of this one yet; Barrier answers the latter.
// Must be applied on the first pass only, after Jobs and Session.
control Admission(in headers_t hdr,
                  inout metadata_t meta,
                  in standard_metadata_t standard_metadata) {
    bit<16> body;
    bool    fits;

    apply {
        body = hdr.switchgnn.bits == NO_BODY ? 0
            : (bit<16>) GROUPS(hdr.switchgnn.width, hdr.switchgnn.bits) << 5;
        // A short body has numbers of 32 bits only, as fewer would not make it shorter.
        fits = HAS_NUMBERS(hdr.switchgnn.kind)
            ? hdr.ipv4.total_len - (hdr.places.isValid() ? 16w16 : 0) == BARE_LENGTH + body
                && (hdr.switchgnn.bits != BITS_16 || hdr.switchgnn.width > LANES_8)
                && (hdr.switchgnn.bits != BITS_8 || hdr.switchgnn.width > LANES_16)
                && (hdr.switchgnn.bits == BITS_32 || !IS_REDUCE(hdr.switchgnn))
            : true;
        if (standard_metadata.parser_error != error.NoError
                || standard_metadata.checksum_error == 1
                || hdr.ethernet.ether_type == ETHERTYPE_VLAN
                || hdr.ethernet.ether_type == ETHERTYPE_SERVICE_VLAN
                || (hdr.ipv4.isValid() && hdr.ipv4.protocol == PROTOCOL_SWITCHGNN
                    && !hdr.switchgnn.isValid())) {
            meta.outcome = MALFORMED;
        } else if (hdr.switchgnn.isValid() && meta.own.job == 0
                   && hdr.switchgnn.kind != kind_t.DONE) {
            meta.outcome = NO_JOB;
        } else if (hdr.switchgnn.isValid()) {
            if (hdr.switchgnn.version != SWITCHGNN_VERSION || !fits
                    || ((meta.frame_width >> meta.loop.rows) > meta.width && meta.own.job != 0
                        && !IS_REDUCE(hdr.switchgnn))
                    || (IS_PARTIAL(hdr.switchgnn.src_id)
                        && hdr.switchgnn.width != meta.frame_width >> meta.loop.rows)
                    || (IS_REDUCE(hdr.switchgnn) && hdr.switchgnn.pool != 0)
                    || (hdr.barrier.isValid() && hdr.barrier.magnitude > LARGEST_FLOAT)) {
                meta.outcome = MALFORMED;
            } else if (meta.from_above == 1) {
                if (hdr.switchgnn.kind == kind_t.DONE
                        || hdr.switchgnn.kind == kind_t.REDUCE
                        || (hdr.switchgnn.kind == kind_t.FEATURE
                            && hdr.switchgnn.resend == 0)) {
                    meta.outcome = UNKNOWN_KIND;
                }
            } else if (hdr.switchgnn.kind != kind_t.FEATURE
                       && hdr.switchgnn.kind != kind_t.DONE
                       && hdr.switchgnn.kind != kind_t.RECALL
                       && hdr.switchgnn.kind != kind_t.FETCH
                       && hdr.switchgnn.kind != kind_t.NOTICE
                       && hdr.switchgnn.kind != kind_t.REDUCE
                       && hdr.switchgnn.kind != kind_t.REDUCING
                       && (hdr.switchgnn.kind != kind_t.REDUCED
                           || hdr.switchgnn.resend == 0)) {
                meta.outcome = UNKNOWN_KIND;
            }
            if (meta.outcome == PENDING && hdr.switchgnn.kind != kind_t.DONE
                    && OTHER_SESSION(hdr, meta)) {
                meta.outcome = WRONG_SESSION;
            }
        }
    }
}
#endif
