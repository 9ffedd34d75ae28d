// The headers of the Tofino program. Lanes are fields, as a stateful ALU adds two of them.
#pragma once

#include "sizes.p4"
#include "../headers.p4"

struct halves_t {
    bit<16> hi;
    bit<16> lo;
}

// DO(g) for each group of 8 lanes of a packet.
#define EACH_GROUP(DO) DO(0) DO(1) DO(2) DO(3)

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

// Only in the loop, behind a `done`: what the controls of the barrier work with. No packet has this and
// lanes, so it takes no room beside them.
header work_t {
    // Done
    worker_set_t worker_bit;
    worker_set_t members;
    bit<32> above;         // not 0: the magnitude is above the limit
    bit<32> block;         // the tag without round and pool: 0 for block 0
    bit<32> first;         // the worker, and whether its early features may come
    bit<32> move_hi;       // the tag that comes next: of features
    bit<32> next;
    bit<32> says_hi;       // of the process that speaks
    bit<32> start;         // and of `done`
    bit<32> worker;
    // The barrier
    worker_set_t before;   // those that were done
    worker_set_t after;    // and those that are
    worker_set_t lacks;    // not all
    worker_set_t beats;    // heartbeats
    bit<32> culprit;
    bit<32> early_features;
    bit<32> following_first;
    bit<32> following_next;
    bit<32> known;
    bit<32> largest;
    bit<32> later;
    bit<32> learned;
    bit<32> newer;
    bit<32> newest_round;
    bit<32> number;
    bit<32> other_session;
    bit<32> reporter;
    bit<32> same;
    bit<32> tag_hi;
    bit<32> tag_lo;
    bit<32> unused;
    bit<32> window;
    bit<32> window_newer;
    bit<32> window_same;
    bit<32> window_session;
}

#define GROUP(g) group_t group##g;
struct headers_t {
    ethernet_t  ethernet;
    ipv4_t      ipv4;
    switchgnn_t switchgnn;
    barrier_t   barrier;
    waiting_t   waiting;
    work_t      work;
    EACH_GROUP(GROUP)
}
