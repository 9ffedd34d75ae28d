// Other protocols are parsed only as far as needed to forward and mark their frames. A packet is
// parsed again after each turn through the loop.
#pragma once

#include "metadata.p4"

#ifndef TOFINO
#define PARSE_CHUNK(c, next) \
    state parse_chunk##c { \
        packet.extract(hdr.chunk##c); \
        transition select(groups[5:2]) { \
            next: parse_rest; \
            default: parse_chunk##next; \
        } \
    }

#define PARSE_LAST(name) \
    state parse_##name { \
        packet.extract(hdr.name); \
        transition accept; \
    }

parser SwitchParser(packet_in packet,
                    out headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    bit<6> groups;

    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.flags[0:0], hdr.ipv4.frag_offset,
                          hdr.ipv4.protocol) {
            // Whole packets only: no options, no more fragments, no offset.
            (5, 0, 0, PROTOCOL_SWITCHGNN): parse_switchgnn;
            default: accept;
        }
    }

    state parse_switchgnn {
        packet.extract(hdr.switchgnn);
        groups = (bit<6>) ((hdr.ipv4.total_len - BARE_LENGTH) >> 5);
        transition select(hdr.switchgnn.kind) {
            kind_t.FEATURE: parse_payload;
            kind_t.SUM:     parse_sum;
            kind_t.REDUCE:  parse_payload;
            kind_t.REDUCED: parse_payload;
            kind_t.DONE:    parse_barrier;
            kind_t.ADVANCE: parse_barrier;
            kind_t.WAITING: parse_barrier;
            kind_t.REDUCING: parse_barrier;
            default: accept;
        }
    }

    state parse_sum {
        transition select(hdr.switchgnn.dst_id) {
            SUM_BUNDLES &&& SUM_BUNDLES: parse_places;
            default: parse_payload;
        }
    }

    // Places are half a group long, which `groups` does not count.
    state parse_places {
        packet.extract(hdr.places);
        transition parse_payload;
    }

    // Admission compares the length with what the header says. Inside the loop there may be more.
    state parse_payload {
        transition select(groups[5:2]) {
            0: parse_rest;
            default: parse_chunk0;
        }
    }

    PARSE_CHUNK(0, 1)
    PARSE_CHUNK(1, 2)
    PARSE_CHUNK(2, 3)
    PARSE_CHUNK(3, 4)
    PARSE_CHUNK(4, 5)
    PARSE_CHUNK(5, 6)
    PARSE_CHUNK(6, 7)
    PARSE_LAST(chunk7)
    PARSE_LAST(lanes8)
    PARSE_LAST(lanes16)
    PARSE_LAST(lanes24)
    PARSE_LAST(waiting)

    state parse_rest {
        transition select(groups[1:0]) {
            1: parse_lanes8;
            2: parse_lanes16;
            3: parse_lanes24;
            default: accept;
        }
    }

    state parse_barrier {
        packet.extract(hdr.barrier);
        transition select(hdr.switchgnn.kind) {
            kind_t.WAITING: parse_waiting;
            kind_t.REDUCING: parse_waiting;
            default: accept;
        }
    }
}

control SwitchDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

// BMv2 leaves out headers that are not valid:
// https://github.com/p4lang/behavioral-model/blob/main/src/bm_sim/calculations.cpp
#define CHECKED                                                                          \
    { SWITCHGNN_FIELDS, hdr.places, hdr.chunk0, hdr.chunk1, hdr.chunk2, hdr.chunk3,      \
      hdr.chunk4, hdr.chunk5, hdr.chunk6, hdr.chunk7, hdr.lanes8, hdr.lanes16,           \
      hdr.lanes24, hdr.barrier, hdr.waiting }

#define TURN_OF(hdr) \
    hdr.switchgnn.session, hdr.switchgnn.round
#define ARRIVES(meta) (meta.loop.pass_number == 0)
#endif

// A CRC over header and payload, so that a corrupted packet is dropped and never summed. It is
// verified when a packet arrives at a port and computed when one leaves, not inside the loop.
#define SWITCHGNN_FIELDS                                                    \
    hdr.switchgnn.src_id, hdr.switchgnn.dst_id, hdr.switchgnn.block_id,     \
    hdr.switchgnn.count, hdr.switchgnn.is_ack, hdr.switchgnn.is_fetch,      \
    hdr.switchgnn.ecn, hdr.switchgnn.resend, hdr.switchgnn.kind,            \
    hdr.switchgnn.version, hdr.switchgnn.bits, hdr.switchgnn.level,         \
    hdr.switchgnn.echo, hdr.switchgnn.fragment, hdr.switchgnn.pool,         \
    hdr.switchgnn.width, hdr.switchgnn.feature_group,                       \
    TURN_OF(hdr)

control VerifyChecksums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(ARRIVES(meta) && hdr.switchgnn.isValid(), CHECKED,
                        hdr.switchgnn.checksum, HashAlgorithm.crc32);
    }
}

control ComputeChecksums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(meta.update_ipv4 == 1,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn,
              hdr.ipv4.total_len, hdr.ipv4.identification, hdr.ipv4.flags,
              hdr.ipv4.frag_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src_addr, hdr.ipv4.dst_addr },
            hdr.ipv4.hdr_checksum, HashAlgorithm.csum16);
        update_checksum(meta.seal == 1, CHECKED, hdr.switchgnn.checksum, HashAlgorithm.crc32);
    }
}
