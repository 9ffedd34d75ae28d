// Explicit congestion notification, from the marked packet to the senders.
#pragma once

#include "metadata.p4"

const bit<2> ECN_NOT_CAPABLE = 0;
const bit<2> ECN_CONGESTION_EXPERIENCED = 3;
// The last cell includes all longer queues; BMv2's queues hold 64 packets.
const bit<32> QUEUE_LENGTHS = 65;
// A port is shared if more than one in 32 of its packets is ordinary and long, for at least eight of
// them, and until ours have outnumbered them again. Short ones, as of a barrier, fill no queue.
#define LONG_FROM 512
const bit<16> WEIGHT_OF_OTHERS = 32;
const bit<16> SHARED_FROM = 256;
const bit<16> MOST_OF_OTHERS = 1024;

// Whether ordinary traffic shares a port, by the packets that leave through it.
control PortShare(in headers_t hdr, in standard_metadata_t standard_metadata, out flag_t shared) {
    REGISTER(MAX_PORTS, others)
    COUNTER(QUEUE_LENGTHS, port_queue)

    index_t found; index_t port;

    // From their weight.
#define SHARED \
        one = 0; \
        if (value.lo >= (bit<32>) SHARED_FROM) { \
            one = 1; \
        }
    FLAG(others, heavier,
        SHARED
        if (value.lo < (bit<32>) MOST_OF_OTHERS) {
            value.lo = value.lo + (bit<32>) WEIGHT_OF_OTHERS;
        })
    FLAG(others, lighter,
        SHARED
        value.lo = value.lo |-| 1;)
    FLAG(others, weigh,
        SHARED)

    apply {
        shared = 0;
        if (standard_metadata.egress_port[8:8] == 0) {
            port = (index_t) standard_metadata.egress_port[7:0];
            found = (index_t) standard_metadata.enq_qdepth[5:0];
            if (standard_metadata.enq_qdepth[18:6] != 0) {
                found = (index_t) (QUEUE_LENGTHS - 1);
            }
            COUNT_ONE(port_queue, found)
            if (hdr.switchgnn.isValid()) {
                RUN(lighter, port, shared)
            } else if (standard_metadata.packet_length >= LONG_FROM) {
                RUN(heavier, port, shared)
            } else {
                RUN(weigh, port, shared)
            }
        }
    }
}

// A packet that found its egress queue longer than the threshold is marked in the SwitchGNN
// header and, where the sender supports it, in the IPv4 header. A queue of sums alone may hold those
// of a block; on a port that they share with ordinary traffic the threshold is lower.
control Congestion(inout headers_t hdr,
                   inout metadata_t meta,
                   in standard_metadata_t standard_metadata,
                   in flag_t shared) {
    COUNTER(1, marked)

    bit<19> limit; bit<19> limit_beside_others; bit<19> above;

    action set_threshold(bit<19> alone, bit<19> beside_others) {
        limit = alone;
        limit_beside_others = beside_others;
    }

    action measure() { above = standard_metadata.enq_qdepth |-| limit; }

    table threshold {
        key = { standard_metadata.egress_port: exact @name("port"); }
        actions = { set_threshold; @defaultonly NoAction; }
        const default_action = NoAction;
        size = MAX_PORTS + (MAX_JOBS << LOOP_LANE_BITS);
    }

    apply {
        limit = 0x7ffff;
        limit_beside_others = 0x7ffff;
        threshold.apply();
        if (shared == 1) {
            limit = limit_beside_others;
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

// A worker that receives marked packets cannot shorten its queue by sending less: the queue holds
// sums of the others' features. So it notifies the switch, which notifies all workers, like a
// congestion notification packet of DCQCN (Zhu et al., SIGCOMM 2015, section 3.1).
control Notice(inout headers_t hdr,
               inout metadata_t meta,
               inout standard_metadata_t standard_metadata) {
    apply {
        if (meta.from_above == 1) {
            meta.outcome = PASSED_ON;
            standard_metadata.mcast_grp = GROUP_OF(meta, WORKERS_GROUP);
        } else if (!SPEAKS_FOR_ITSELF(hdr, meta)) {
            meta.outcome = WRONG_PORT;
        } else {
            meta.outcome = NOTICED;
            if (meta.above_port != 0) {
                // It comes back from above, for all workers.
                hdr.switchgnn.src_id = meta.switch_number;
                standard_metadata.egress_spec = meta.above_port;
            } else {
                standard_metadata.mcast_grp = GROUP_OF(meta, WORKERS_GROUP);
            }
        }
    }
}
