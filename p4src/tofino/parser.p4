// What both architectures parse alike: as ../parser.p4, but bodies are at most 8 groups of 8 lanes.
#pragma once

#include "headers.p4"

#define TAKE_GROUP(g) packet.extract(hdr.group##g);
#define BODY_STATE(n) \
    state parse_body##n { \
        FIRST_##n(TAKE_GROUP) \
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

#define BODY_CASE(n) BARE_LENGTH + 32 * n: parse_body##n;
#define PARSE_BODIES \
    state parse_body { \
        transition select(hdr.ipv4.total_len) { \
            EACH_NUMBER(BODY_CASE) \
            default: accept; \
        } \
    } \
    EACH_NUMBER(BODY_STATE)
