// The path of each copy of a packet that leaves on a port; as ../egress.p4.
#pragma once

#include "metadata.p4"
#include "headers.p4"
#include "loop.p4"
#include "../congestion.p4"
#include "../rewrite.p4"

// A packet that found its egress queue longer than the threshold is marked.
control Congestion(inout headers_t hdr,
                   inout metadata_t meta,
                   in standard_metadata_t standard_metadata) {
    REGISTER(MAX_PORTS, others)
    COUNTER(1, marked)
    COUNTER(QUEUE_LENGTHS, port_queue)

    bit<19> limit;
    bit<19> limit_beside_others;
    bit<19> above;
    index_t found;
    bit<32> weight;
    index_t port;

    ALU(others, heavier,
        if (value.lo < (bit<32>) MOST_OF_OTHERS) {
            value.lo = value.lo + (bit<32>) WEIGHT_OF_OTHERS;
        }
        one = value.lo;)
    ALU(others, lighter,
        value.lo = value.lo |-| 1;
        one = value.lo;)
    ALU(others, weigh,
        one = value.lo;)

    action set_threshold(bit<19> alone, bit<19> beside_others) {
        limit = alone;
        limit_beside_others = beside_others;
    }

    action measure() { above = standard_metadata.enq_qdepth |-| limit; }

    table threshold {
        key = {
            standard_metadata.egress_port: exact @name("port");
        }
        actions = {
            set_threshold;
            @defaultonly NoAction;
        }
        const default_action = NoAction;
        size = MAX_PORTS + (MAX_JOBS << LOOP_LANE_BITS);
    }

    apply {
        limit = 0x7ffff;
        limit_beside_others = 0x7ffff;
        threshold.apply();
        if (standard_metadata.egress_port[8:8] == 0) {
            port = 8w0 ++ standard_metadata.egress_port[7:0];
            found = 10w0 ++ standard_metadata.enq_qdepth[5:0];
            if (standard_metadata.enq_qdepth[18:6] != 0) {
                found = (index_t) (QUEUE_LENGTHS - 1);
            }
            COUNT_ONE(port_queue, found)
            if (hdr.switchgnn.isValid()) {
                RUN(lighter, port, weight)
            } else if (standard_metadata.packet_length[15:9] != 0) {
                RUN(heavier, port, weight)
            } else {
                RUN(weigh, port, weight)
            }
            if (weight[31:8] != 0) {
                limit = limit_beside_others;
            }
        }
        measure();
        if (above != 0) {
            if (hdr.switchgnn.isValid()) {
                hdr.switchgnn.ecn = 1;
                marked.count(0);
            } else if (hdr.ipv4.isValid() && hdr.ipv4.ihl == 5
                       && hdr.ipv4.ecn != ECN_NOT_CAPABLE) {
                hdr.ipv4.ecn = ECN_CONGESTION_EXPERIENCED;
                meta.update_ipv4 = 1;
                marked.count(0);
            }
        }
    }
}

// A copy for a port: a sum, an acknowledgement or another answer, or the packet as it came.
control Rewrite(inout headers_t hdr, inout metadata_t meta, in port_t egress_port) {
    Address() address;

    action make_sum() {
        hdr.switchgnn.kind = kind_t.SUM;
        hdr.switchgnn.src_id = 0;
        hdr.switchgnn.dst_id = meta.loop.destination;
        hdr.switchgnn.count = meta.loop.count;
        hdr.switchgnn.is_ack = 0;
        hdr.switchgnn.echo = 0;
    }

    // Also what is otherwise the Count of an acknowledgement.
    action acknowledge_too() {
        hdr.switchgnn.is_ack = 1;
        hdr.switchgnn.src_id = (vertex_t) meta.loop.accepted;
    }

    action make_ack() {
        hdr.switchgnn.kind = kind_t.ACK;
        hdr.switchgnn.is_ack = 1;
        hdr.switchgnn.count = meta.loop.accepted;
    }

    action make_missing() {
        hdr.switchgnn.kind = kind_t.MISSING;
        hdr.switchgnn.count = meta.loop.count;
    }

    // To a `done`: a worker, and a refusal or 0.
    action answer(kind_t kind) {
        hdr.switchgnn.kind = kind;
        hdr.switchgnn.turn[31:24] = meta.loop.accepted[7:0];
        hdr.switchgnn.dst_id = meta.loop.destination;
        hdr.switchgnn.count = meta.loop.count;
        hdr.switchgnn.feature_group = 0;
        hdr.switchgnn.echo = 0;
    }

    apply {
        if (meta.loop.leave == leave_t.SUM) {
            make_sum();
            if (meta.loop.ecn == 1) {
                hdr.switchgnn.ecn = 1;
            }
            if (meta.loop.flags == SUM_ACKNOWLEDGES && egress_port == meta.loop.port) {
                acknowledge_too();
            }
        } else if (meta.loop.leave == leave_t.ACK) {
            make_ack();
        } else if (meta.loop.leave == leave_t.MISSING) {
            make_missing();
        } else if (meta.loop.leave == leave_t.FETCH) {
            hdr.switchgnn.count = 0;
        } else if (meta.loop.leave == leave_t.ADVANCE) {
            answer(kind_t.ADVANCE);
        } else if (meta.loop.leave == leave_t.WAITING) {
            answer(kind_t.WAITING);
        }
        hdr.ipv4.dscp = meta.loop.dscp;
        hdr.ipv4.ttl = 64;
        meta.update_ipv4 = 1;
        meta.seal = 1;
        address.apply(hdr, egress_port);
    }
}

control SwitchEgress(inout headers_t hdr,
                     inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    Congestion() congestion;
    Rewrite()    rewrite;

    apply {
        congestion.apply(hdr, meta, standard_metadata);
        if (standard_metadata.egress_port >= FIRST_LOOP_PORT) {
            if (meta.loop.step == step_t.HOP && standard_metadata.egress_rid == HARVEST_COPY) {
                meta.loop.step = step_t.HARVEST;
                meta.loop.hop = meta.loop.hop - 1;
            }
            GO_AROUND(1)
        } else if (meta.loop.flood == 1 && standard_metadata.egress_port == meta.loop.port) {
            DROP(standard_metadata)
        } else if (hdr.switchgnn.isValid()) {
            rewrite.apply(hdr, meta, standard_metadata.egress_port);
        }
    }
}
