// Explicit congestion notification, from the marked packet to the senders.
#pragma once

#include "metadata.p4"

const bit<2> ECN_NOT_CAPABLE = 0;
const bit<2> ECN_CONGESTION_EXPERIENCED = 3;
// The last cell includes all longer queues; BMv2's queues hold 64 packets.
const bit<32> QUEUE_LENGTHS = 65;
// A port is shared if more than one in 32 of its packets is ordinary and long, for at least eight of
// them, and until ours have outnumbered them again. Short ones, as of a barrier, fill no queue.
const bit<32> LONG_FROM = 512;
const bit<16> WEIGHT_OF_OTHERS = 32;
const bit<16> SHARED_FROM = 256;
const bit<16> MOST_OF_OTHERS = 1024;

#ifndef TOFINO
// A packet that found its egress queue longer than the threshold is marked in the SwitchGNN
// header and, where the sender supports it, in the IPv4 header. A queue of sums alone may hold those
// of a block; on a port that they share with ordinary traffic the threshold is lower.
control Congestion(inout headers_t hdr,
                   inout metadata_t meta,
                   in standard_metadata_t standard_metadata) {
    bit<19> limit;
    bit<19> limit_beside_others;
    bit<16> weight;

    register<bit<16>>(MAX_PORTS) others;
    counter(1, CounterType.packets) marked;
    counter(QUEUE_LENGTHS, CounterType.packets) port_queue;
    bit<32> found;

    // In packets; beside_others: on ports with ordinary traffic.
    action set_threshold(bit<19> alone, bit<19> beside_others) {
        limit = alone;
        limit_beside_others = beside_others;
    }

    action weigh_others() {
        others.write((bit<32>) standard_metadata.egress_port, weight);
        limit = weight < SHARED_FROM ? limit : limit_beside_others;
    }

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
        if (standard_metadata.egress_port < FIRST_LOOP_PORT) {
            found = (bit<32>) standard_metadata.enq_qdepth;
            port_queue.count(found < QUEUE_LENGTHS ? found : QUEUE_LENGTHS - 1);
            others.read(weight, (bit<32>) standard_metadata.egress_port);
            if (!hdr.switchgnn.isValid() && standard_metadata.packet_length >= LONG_FROM) {
                weight = weight < MOST_OF_OTHERS ? weight + WEIGHT_OF_OTHERS : weight;
                weigh_others();
            } else if (weight != 0) {
                weight = hdr.switchgnn.isValid() ? weight - 1 : weight;
                weigh_others();
            }
        }
        if (standard_metadata.enq_qdepth > limit) {
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

#endif

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
#ifndef TOFINO
            if (meta.above_port != 0) {
                // It comes back from above, for all workers.
                hdr.switchgnn.src_id = meta.switch_number;
                standard_metadata.egress_spec = meta.above_port;
            } else
#endif
            {
                standard_metadata.mcast_grp = GROUP_OF(meta, WORKERS_GROUP);
            }
        }
    }
}
