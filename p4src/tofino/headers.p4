// The headers of the Tofino program. Lanes are fields, as a stateful ALU adds two of them.
#pragma once

#include "sizes.p4"
#include "../headers.p4"

struct halves_t {
    bit<16> hi;
    bit<16> lo;
}

// DO(g) for each group of 8 lanes of a packet.
#define EACH_GROUP(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)

header group_t {
    bit<32> lane0;
    bit<32> lane1;
    bit<32> lane2;
    bit<32> lane3;
    bit<32> lane4;
    bit<32> lane5;
    bit<32> lane6;
    bit<32> lane7;
}

#define LOSE(g) hdr.group##g.setInvalid();

// Only in the loop, behind a `done`: what it says.
header done_t {
    bit<8>  above;         // 1: the magnitude is above the limit
    bit<32> block;         // the tag without round and pool: 0 for block 0
    bit<32> first;         // the worker, and whether its early features may come
    bit<32> move_hi;       // the tag that comes next
    bit<32> next;
}

#define GROUP(g) group_t group##g;
struct headers_t {
    ethernet_t  ethernet;
    ipv4_t      ipv4;
    switchgnn_t switchgnn;
    barrier_t   barrier;
    waiting_t   waiting;
    done_t      done;
    EACH_GROUP(GROUP)
}
