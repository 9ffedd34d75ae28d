// The headers of the Tofino program. Lanes are fields, as a stateful ALU adds two of them.
#pragma once

#include "sizes.p4"
#include "../headers.p4"

// DO(g) for each group of 8 lanes of a packet.
#if LANE_GROUPS == 8
#define EACH_GROUP(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#else
#define EACH_GROUP(DO) DO(0) DO(1) DO(2) DO(3)
#endif

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

// Only in the loop, with a packet of the barrier: sets of workers, which take the place of lanes.
header sets_t {
    worker_set_t own;      // the packet's worker
    worker_set_t members;
    worker_set_t before;   // those that were done
    worker_set_t after;    // and those that are
    worker_set_t beats;    // the packet's heartbeat
}

#define GROUP(g) group_t group##g;
struct headers_t {
    ethernet_t  ethernet;
    ipv4_t      ipv4;
    switchgnn_t switchgnn;
    barrier_t   barrier;
    waiting_t   waiting;
    sets_t      sets;
    EACH_GROUP(GROUP)
}
