// The headers of the Tofino program. Lanes are fields, as a stateful ALU adds two of them.
#pragma once

#include "sizes.p4"
#include "../headers.p4"

struct halves_t {
    bit<16> hi;
    bit<16> lo;
}

// DO(g) for the first n groups of 8 lanes of a packet, or all; DO(n) for each number of groups.
#define FIRST_1(DO) DO(0)
#define FIRST_2(DO) FIRST_1(DO) DO(1)
#define FIRST_3(DO) FIRST_2(DO) DO(2)
#define FIRST_4(DO) FIRST_3(DO) DO(3)
#define FIRST_5(DO) FIRST_4(DO) DO(4)
#define FIRST_6(DO) FIRST_5(DO) DO(5)
#define FIRST_7(DO) FIRST_6(DO) DO(6)
#define FIRST_8(DO) FIRST_7(DO) DO(7)
#define EACH_GROUP(DO) FIRST_8(DO)
#define EACH_NUMBER(DO) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8)

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
