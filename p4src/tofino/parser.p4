// What both architectures parse alike: as ../parser.p4, but bodies are at most 8 groups of 8 lanes.
#pragma once

#include "headers.p4"

#define TAKE_GROUP(g) packet.extract(hdr.group##g);
#define BODY_STATE(n, more) \
    state parse_body##n { \
        more \
        transition accept; \
    }

// Of packets that arrive, are in the loop, or leave.
#define PARSE_HEADERS(when, then) \
    state parse_##when##_ethernet { \
        packet.extract(hdr.ethernet); \
        transition select(hdr.ethernet.ether_type) { \
            ETHERTYPE_IPV4: parse_##when##_ipv4; \
            default: accept; \
        } \
    } \
    state parse_##when##_ipv4 { \
        packet.extract(hdr.ipv4); \
        transition select(hdr.ipv4.ihl, hdr.ipv4.flags[0:0], hdr.ipv4.frag_offset, \
                          hdr.ipv4.protocol) { \
            (5, 0, 0, PROTOCOL_SWITCHGNN): parse_##when##_switchgnn; \
            default: accept; \
        } \
    } \
    state parse_##when##_switchgnn { \
        packet.extract(hdr.switchgnn); \
        transition then; \
    }

#define PARSE_KINDS(when, of_done, of_waiting) \
    PARSE_HEADERS(when, parse_##when##_kind) \
    state parse_##when##_kind { \
        transition select(hdr.switchgnn.kind) { \
            kind_t.FEATURE:  parse_body; \
            kind_t.SUM:      parse_body; \
            kind_t.MISSING:  parse_body; \
            kind_t.REDUCE:   parse_body; \
            kind_t.REDUCED:  parse_body; \
            kind_t.DONE:     of_done; \
            kind_t.ADVANCE:  of_done; \
            kind_t.WAITING:  of_waiting; \
            kind_t.REDUCING: of_waiting; \
            default: accept; \
        } \
    }

#define PARSE_DONE \
    state parse_barrier { \
        packet.extract(hdr.barrier); \
        transition accept; \
    } \
    state parse_done { \
        packet.extract(hdr.barrier); \
        packet.extract(hdr.done); \
        transition accept; \
    } \
    state parse_waiting { \
        packet.extract(hdr.barrier); \
        packet.extract(hdr.waiting); \
        transition accept; \
    }

#define PARSE_BODIES \
    state parse_body { \
        transition select(hdr.ipv4.total_len) { \
            BARE_LENGTH + 32: parse_body1; \
            BARE_LENGTH + 64: parse_body2; \
            BARE_LENGTH + 96: parse_body3; \
            BARE_LENGTH + 128: parse_body4; \
            BARE_LENGTH + 160: parse_body5; \
            BARE_LENGTH + 192: parse_body6; \
            BARE_LENGTH + 224: parse_body7; \
            BARE_LENGTH + 256: parse_body8; \
            default: accept; \
        } \
    } \
    BODY_STATE(1, TAKE_GROUP(0)) \
    BODY_STATE(2, TAKE_GROUP(0) TAKE_GROUP(1)) \
    BODY_STATE(3, TAKE_GROUP(0) TAKE_GROUP(1) TAKE_GROUP(2)) \
    BODY_STATE(4, TAKE_GROUP(0) TAKE_GROUP(1) TAKE_GROUP(2) TAKE_GROUP(3)) \
    BODY_STATE(5, TAKE_GROUP(0) TAKE_GROUP(1) TAKE_GROUP(2) TAKE_GROUP(3) TAKE_GROUP(4)) \
    BODY_STATE(6, TAKE_GROUP(0) TAKE_GROUP(1) TAKE_GROUP(2) TAKE_GROUP(3) TAKE_GROUP(4) TAKE_GROUP(5)) \
    BODY_STATE(7, TAKE_GROUP(0) TAKE_GROUP(1) TAKE_GROUP(2) TAKE_GROUP(3) TAKE_GROUP(4) TAKE_GROUP(5) TAKE_GROUP(6)) \
    BODY_STATE(8, TAKE_GROUP(0) TAKE_GROUP(1) TAKE_GROUP(2) TAKE_GROUP(3) TAKE_GROUP(4) TAKE_GROUP(5) TAKE_GROUP(6) TAKE_GROUP(7))
