// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Other protocols are parsed only as far as needed to forward and mark their frames. A packet is
// parsed again after each turn through the loop.
#pragma once

#include "metadata.p4"

parser SwitchParser(packet_in packet,
                    out headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
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
        transition select(hdr.switchgnn.kind) {
            kind_t.FEATURE: parse_payload;
            kind_t.SUM:     parse_payload;
            kind_t.DONE:    parse_barrier;
            kind_t.ADVANCE: parse_barrier;
            kind_t.WAITING: parse_barrier;
            kind_t.REDUCE:  parse_reduce;
            kind_t.REDUCED: parse_reduce;
            kind_t.REDUCING: parse_barrier;
            default: accept;
        }
    }

    state parse_reduce {
        verify(hdr.switchgnn.bits == BITS_32, error.NoMatch);
        transition parse_payload;
    }

    state parse_payload {
        transition select(hdr.switchgnn.bits, hdr.switchgnn.width) {
            (BITS_32, LANES_8):   parse_lanes8;
            (BITS_32, LANES_16):  parse_lanes16;
            (BITS_32, LANES_32):  parse_chunk0;
            (BITS_32, LANES_64):  parse_chunk1;
            (BITS_32, LANES_128): parse_chunk3;
            (BITS_32, LANES_256): parse_chunk7;
            (BITS_16, LANES_16):  parse_lanes8;
            (BITS_16, LANES_32):  parse_lanes16;
            (BITS_16, LANES_64):  parse_chunk0;
            (BITS_16, LANES_128): parse_chunk1;
            (BITS_16, LANES_256): parse_chunk3;
            (BITS_8, LANES_32):   parse_lanes8;
            (BITS_8, LANES_64):   parse_lanes16;
            (BITS_8, LANES_128):  parse_chunk0;
            (BITS_8, LANES_256):  parse_chunk1;
            (NO_BODY, _):         accept;
            default: parse_nothing;
        }
    }

    // There are no such bits of this width. BMv2 takes no transition for no error.
    state parse_nothing {
        verify(false, error.NoMatch);
        transition accept;
    }

    state parse_lanes8 {
        packet.extract(hdr.lanes8);
        transition accept;
    }

    state parse_lanes16 {
        packet.extract(hdr.lanes16);
        transition accept;
    }

    state parse_chunk0 {
        packet.extract(hdr.chunk0);
        transition accept;
    }

    state parse_chunk1 {
        packet.extract(hdr.chunk0);
        packet.extract(hdr.chunk1);
        transition accept;
    }

    state parse_chunk3 {
        packet.extract(hdr.chunk0);
        packet.extract(hdr.chunk1);
        packet.extract(hdr.chunk2);
        packet.extract(hdr.chunk3);
        transition accept;
    }

    state parse_chunk7 {
        packet.extract(hdr.chunk0);
        packet.extract(hdr.chunk1);
        packet.extract(hdr.chunk2);
        packet.extract(hdr.chunk3);
        packet.extract(hdr.chunk4);
        packet.extract(hdr.chunk5);
        packet.extract(hdr.chunk6);
        packet.extract(hdr.chunk7);
        transition accept;
    }

    state parse_barrier {
        packet.extract(hdr.barrier);
        transition select(hdr.switchgnn.kind) {
            kind_t.WAITING: parse_waiting;
            kind_t.REDUCING: parse_waiting;
            default: accept;
        }
    }

    state parse_waiting {
        packet.extract(hdr.waiting);
        transition accept;
    }
}

control SwitchDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

// A CRC over header and payload, so that a corrupted packet is dropped and never summed. It is
// verified when a packet arrives at a port and computed when one leaves, not inside the loop.
#define SWITCHGNN_FIELDS                                                    \
    hdr.switchgnn.src_id, hdr.switchgnn.dst_id, hdr.switchgnn.block_id,     \
    hdr.switchgnn.count, hdr.switchgnn.is_ack, hdr.switchgnn.is_fetch,      \
    hdr.switchgnn.ecn, hdr.switchgnn.resend, hdr.switchgnn.kind,            \
    hdr.switchgnn.version, hdr.switchgnn.bits, hdr.switchgnn.level,         \
    hdr.switchgnn.echo, hdr.switchgnn.fragment, hdr.switchgnn.pool,         \
    hdr.switchgnn.width, hdr.switchgnn.feature_group,                       \
    hdr.switchgnn.session, hdr.switchgnn.round

#define BARRIER_FIELDS                                                      \
    hdr.barrier.magnitude, hdr.barrier.plan, hdr.barrier.round,             \
    hdr.barrier.workers

#define CHUNKS_1 hdr.chunk0.lanes
#define CHUNKS_2 CHUNKS_1, hdr.chunk1.lanes
#define CHUNKS_4 CHUNKS_2, hdr.chunk2.lanes, hdr.chunk3.lanes
#define CHUNKS_8 \
    CHUNKS_4, hdr.chunk4.lanes, hdr.chunk5.lanes, hdr.chunk6.lanes, hdr.chunk7.lanes

// DO(condition, fields) for each kind of body.
#define EACH_BODY(DO) \
    DO(hdr.lanes8.isValid(), SWITCHGNN_FIELDS, hdr.lanes8.lanes) \
    DO(hdr.lanes16.isValid(), SWITCHGNN_FIELDS, hdr.lanes16.lanes) \
    DO(hdr.chunk0.isValid() && !hdr.chunk1.isValid(), SWITCHGNN_FIELDS, CHUNKS_1) \
    DO(hdr.chunk1.isValid() && !hdr.chunk2.isValid(), SWITCHGNN_FIELDS, CHUNKS_2) \
    DO(hdr.chunk3.isValid() && !hdr.chunk4.isValid(), SWITCHGNN_FIELDS, CHUNKS_4) \
    DO(hdr.chunk7.isValid(), SWITCHGNN_FIELDS, CHUNKS_8) \
    DO(hdr.barrier.isValid() && !hdr.waiting.isValid(), SWITCHGNN_FIELDS, BARRIER_FIELDS) \
    DO(hdr.waiting.isValid(), SWITCHGNN_FIELDS, BARRIER_FIELDS, hdr.waiting.heartbeats) \
    DO(hdr.switchgnn.isValid() && !hdr.lanes8.isValid() && !hdr.lanes16.isValid() \
       && !hdr.chunk0.isValid() && !hdr.barrier.isValid(), SWITCHGNN_FIELDS)

#define VERIFY(condition, ...) \
    verify_checksum(meta.loop.pass_number == 0 && condition, { __VA_ARGS__ }, \
                    hdr.switchgnn.checksum, HashAlgorithm.crc32);
#define UPDATE(condition, ...) \
    update_checksum(meta.seal == 1 && condition, { __VA_ARGS__ }, \
                    hdr.switchgnn.checksum, HashAlgorithm.crc32);

control VerifyChecksums(inout headers_t hdr, inout metadata_t meta) {
    apply {
        EACH_BODY(VERIFY)
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
        EACH_BODY(UPDATE)
    }
}
