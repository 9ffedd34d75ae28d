// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Other protocols are parsed only as far as needed to forward and mark their frames. A packet is
// parsed again after each turn through the loop.
#ifndef _PARSER_
#define _PARSER_

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
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.switchgnn);
        packet.emit(hdr.lanes8);
        packet.emit(hdr.lanes16);
        packet.emit(hdr.chunk0);
        packet.emit(hdr.chunk1);
        packet.emit(hdr.chunk2);
        packet.emit(hdr.chunk3);
        packet.emit(hdr.chunk4);
        packet.emit(hdr.chunk5);
        packet.emit(hdr.chunk6);
        packet.emit(hdr.chunk7);
        packet.emit(hdr.barrier);
        packet.emit(hdr.waiting);
    }
}

#endif
