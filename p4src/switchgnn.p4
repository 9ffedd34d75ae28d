// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// SwitchGNN for v1model. Each control is in the file of its name, and the class
// that fills its tables is in the file of the same name in controller/.
#include <core.p4>
#include <v1model.p4>

#include "sizes.p4"
#include "headers.p4"
#include "parser.p4"
#include "checksum.p4"
#include "session.p4"
#include "tier.p4"
#include "admission.p4"
#include "worker.p4"
#include "forward.p4"
#include "barrier.p4"
#include "notice.p4"
#include "source.p4"
#include "destination.p4"
#include "ownership.p4"
#include "passage.p4"
#include "recovery.p4"
#include "fanout.p4"
#include "seen.p4"
#include "accepted.p4"
#ifdef BANKS_FILE
#include BANKS_FILE
#else
#include "banks.p4"
#endif
#include "result.p4"
#include "loop.p4"
#include "congestion.p4"
#include "departure.p4"

// All state is in ingress: BMv2 runs it in one thread, egress in four, and
// ignores @atomic.
// https://github.com/p4lang/behavioral-model/blob/main/docs/simple_switch.md
control SwitchIngress(inout headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    Session()     session;
    Tier()        tier;
    Admission()   admission;
    Worker()      worker;
    Forward()     forward;
    Barrier()     barrier;
    Notice()      notice;
    Source()      source;
    Destination() destination;
    Ownership()   ownership;
    Passage()     passage;
    Recovery()    recovery;
    Fanout()      fanout;
    Seen()        seen;
    Accepted()    accepted;
    Banks()       banks;
    Result()      result;
    Loop()        loop;

    counter(OUTCOMES, CounterType.packets) outcome;

    // mark_to_drop comes first: it also clears mcast_grp, and whoever sets
    // mcast_grp or egress_spec after it revives the packet.
    action arrive() {
        mark_to_drop(standard_metadata);
        meta.outcome = AGGREGATED;
    }

    // One number that only grows, whatever the workers do.
    action make_tag() {
        meta.tag = meta.loop.session ++ hdr.switchgnn.round
            ++ hdr.switchgnn.block_id ++ hdr.switchgnn.fragment;
    }

    action remember_port() {
        meta.loop.port = standard_metadata.ingress_port;
    }

    action acknowledge() {
        meta.send_ack = 1;
        standard_metadata.egress_spec = meta.loop.port;
    }

    action send_missing() {
        meta.send_missing = 1;
        standard_metadata.egress_spec = meta.loop.port;
    }

    // The other leaves are asked for their parts.
    action recall_parts() {
        standard_metadata.mcast_grp = ALL_WORKERS_GROUP;
    }

    // The part goes up, the word around, and down from there as if it asked for this.
    action send_part() {
        standard_metadata.mcast_grp = meta.result_group
            + (bit<16>) hdr.switchgnn.src_id[LOOP_LANE_BITS - 1:0];
        meta.loop.pass_number = 1;
        meta.loop.finished = 1;
        meta.loop.port = meta.destination_port;
        hdr.payload.setInvalid();
    }

    action send_again() {
        standard_metadata.egress_spec = meta.result_port;
    }

    apply {
        arrive();
        if (meta.loop.pass_number == 0) {
            session.apply(meta);
            tier.apply(meta);
            remember_port();
        }
        make_tag();
        if (meta.loop.pass_number == 0) {
            worker.apply(meta, standard_metadata.ingress_port);
            admission.apply(hdr, meta, standard_metadata);
            if (meta.outcome == AGGREGATED) {
                if (!hdr.switchgnn.isValid()) {
                    forward.apply(hdr, meta, standard_metadata);
                } else {
                    if (hdr.barrier.isValid()) {
                        barrier.apply(hdr, meta, standard_metadata);
                    } else if (hdr.switchgnn.kind == kind_t.NOTICE) {
                        notice.apply(hdr, meta, standard_metadata);
                    } else {
                        if ((hdr.switchgnn.kind != kind_t.FEATURE
                                || hdr.switchgnn.resend == 1)
                                && (hdr.switchgnn.kind != kind_t.FETCH
                                    || meta.from_above == 0)) {
                            destination.apply(hdr, meta);
                        }
                        // A source that sends from elsewhere, or is fetched above, is not here.
                        if ((hdr.switchgnn.kind == kind_t.FEATURE && meta.from_above == 0)
                                || (hdr.switchgnn.kind == kind_t.FETCH
                                    && meta.destination_above == 0)) {
                            source.apply(hdr, meta);
                        }
                        if (meta.outcome == AGGREGATED) {
                            ownership.apply(hdr, meta);
                        }
                        if (meta.outcome == AGGREGATED) {
                            passage.apply(hdr, meta, standard_metadata);
                        }
                        if ((meta.outcome == AGGREGATED
                                && (hdr.switchgnn.kind != kind_t.FEATURE
                                    || hdr.switchgnn.resend == 1))
                                || meta.look_again == 1) {
                            recovery.apply(hdr, meta, standard_metadata);
                        }
                    }
                }
            }
        }
        if (meta.outcome == AGGREGATED && meta.loop.finished == 0) {
            fanout.apply(hdr, meta);
        }
        if (meta.loop.pass_number == 0) {
            if (meta.outcome == AGGREGATED) {
                seen.apply(meta);
                if (meta.outcome != STALE) {
                    accepted.apply(hdr, meta);
                }
            }
            outcome.count((bit<32>) meta.outcome);
        }
        if (meta.loop.finished == 0
                && (meta.outcome == AGGREGATED || meta.outcome == RECALLED
                    || meta.outcome == FETCHED
                    || meta.look_again == 1)) {
            banks.apply(hdr, meta);
            if (meta.completed == 1) {
                result.apply(hdr, meta);
            }
        }
        if (meta.outcome == AGGREGATED) {
            loop.apply(hdr, meta, standard_metadata);
        } else if (meta.outcome == DUPLICATE && hdr.switchgnn.echo == 1) {
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
            } else {
                meta.send_ack = 1;
            }
        }
    }
}

control SwitchEgress(inout headers_t hdr,
                     inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    Congestion() congestion;
    Departure()  departure;

    action loop_again() {
        meta.send_sum = 0;
        meta.send_ack = 0;
        recirculate_preserving_field_list(1);
    }

    apply {
        congestion.apply(hdr, meta, standard_metadata);
        if (standard_metadata.egress_port >= FIRST_LOOP_PORT) {
            loop_again();
        } else if (hdr.switchgnn.isValid()) {
            departure.apply(hdr, meta, standard_metadata.egress_port);
        } else if (meta.flood == 1
                   && standard_metadata.egress_port == standard_metadata.ingress_port) {
            mark_to_drop(standard_metadata);
        }
    }
}

V1Switch(SwitchParser(),
         VerifyChecksums(),
         SwitchIngress(),
         SwitchEgress(),
         ComputeChecksums(),
         SwitchDeparser()) main;
