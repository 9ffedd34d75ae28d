// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Headers and metadata. docs/protocol.md draws them.
#ifndef _HEADERS_
#define _HEADERS_

typedef bit<9>    port_t;
typedef bit<32>   vertex_t;
typedef bit<16>   worker_t;
typedef bit<24>   slot_t;
typedef bit<16>   count_t;
typedef bit<128>  worker_set_t;
typedef bit<1024> lanes_t;
// session ++ round ++ block ++ fragment: one number that only grows.
typedef bit<80>   tag_t;

const bit<16> ETHERTYPE_IPV4         = 0x0800;
const bit<16> ETHERTYPE_VLAN         = 0x8100;
const bit<16> ETHERTYPE_SERVICE_VLAN = 0x88a8;
// "Use for experimentation and testing", RFC 3692.
const bit<8>  PROTOCOL_SWITCHGNN = 253;
const bit<4>  SWITCHGNN_VERSION  = 1;
// The bits of the largest finite float32; above it are infinity, NaN, and negatives.
const bit<32> LARGEST_FLOAT      = 0x7f7fffff;

enum bit<4> kind_t {
    FEATURE = 1,  // upwards: a feature, or a partial sum of Count of them
    SUM     = 2,  // switch to worker: a complete sum of Count contributions
    DONE    = 3,  // worker to switch: I have all sums of this block; leaf to spine: so have mine
    ADVANCE = 4,  // switch to worker: all workers are done with this block
    WAITING = 5,  // switch to worker: not all are; the header says who is
    ACK     = 6,  // switch to worker: this feature has been through all its slots
    RECALL  = 7,  // worker to switch: send me the sum of my vertex again; spine to leaf: its part
    MISSING = 8,  // switch to worker: that sum is not complete
    FETCH   = 9,  // worker to worker: send me your feature for the sum of my vertex
    NOTICE  = 10  // worker to all workers: packets come to me marked, send more slowly
}

header ethernet_t {
    bit<48> dst_addr;
    bit<48> src_addr;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<6>  dscp;
    bit<2>  ecn;
    bit<16> total_len;
    bit<16> identification;
    bit<3>  flags;
    bit<13> frag_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> hdr_checksum;
    bit<32> src_addr;
    bit<32> dst_addr;
}

header switchgnn_t {
    // The paper's fields, with its names and widths (section 4).
    vertex_t src_id;
    vertex_t dst_id;
    bit<16>  block_id;
    count_t  count;
    bit<1>   is_ack;
    bit<1>   is_fetch;
    bit<1>   ecn;
    bit<1>   resend;
    // Our extension.
    kind_t   kind;
    bit<4>   version;
    bit<3>   level;
    bit<1>   echo;
    bit<16>  fragment;
    bit<16>  feature_group;  // features that are acknowledged together
    bit<32>  round;
    bit<32>  checksum;
}

// Follows the SwitchGNN header in FEATURE and SUM.
header payload_t {
    lanes_t lanes;
}

// Follows the SwitchGNN header in DONE, ADVANCE and WAITING.
header barrier_t {
    bit<32>      magnitude;  // float32 bits; the largest of the round
    bit<32>      plan;       // the first 32 bits of the plan's digest
    bit<32>      round;      // the round that the switch stands in
    worker_set_t workers;    // who is done, one bit per worker
}

struct headers_t {
    ethernet_t  ethernet;
    ipv4_t      ipv4;
    switchgnn_t switchgnn;
    payload_t   payload;
    barrier_t   barrier;
}

// What became of a frame that a port received; index of the counter `outcome`.
// Every frame is counted under exactly one of them.
typedef bit<8> outcome_t;
const outcome_t AGGREGATED      = 0;
const outcome_t DUPLICATE       = 1;
const outcome_t STALE           = 2;
const outcome_t WRONG_PORT      = 3;
const outcome_t UNKNOWN_VERTEX  = 4;
const outcome_t UNKNOWN_BLOCK   = 5;
const outcome_t WRONG_COUNT     = 6;
const outcome_t DONE_COLLECTED  = 7;
const outcome_t DONE_REPEATED   = 8;
const outcome_t WRONG_PLAN      = 9;
const outcome_t FORWARDED       = 10;
const outcome_t FLOODED         = 11;
const outcome_t UNKNOWN_STATION = 12;
const outcome_t MALFORMED       = 13;
const outcome_t UNKNOWN_KIND    = 14;
const outcome_t RECALLED        = 15;
const outcome_t FETCHED         = 16;
const outcome_t RESENT          = 17;
const outcome_t NOTICED         = 18;
const outcome_t PASSED_ON       = 19;  // between a worker and a switch above
const bit<32>   OUTCOMES        = 20;

// What became of a contribution in its slot, beyond being added; index of the
// counter `events` of a bank.
const bit<32> SLOT_COMPLETED = 0;
const bit<32> SLOT_STALE     = 1;  // the slot belongs to a later block already
const bit<32> SLOT_OVERFULL  = 2;  // more contributions than expected: never completes
const bit<32> SLOT_RELEASED  = 3;  // came to a slot whose vertex is summed by its worker
const bit<32> SLOT_EVENTS    = 4;

// The count of a released slot. Counts add up to this and no further, so that
// nothing that still arrives can complete the slot.
const count_t RELEASED = 0xffff;

// Where a packet is in its way through its slots; kept when it recirculates.
struct loop_t {
    @field_list(1) bit<16> pass_number;
    @field_list(1) bit<16> session;
    @field_list(1) bit<16> hop;
    @field_list(1) bit<4>  next_bank;
    @field_list(1) bit<1>  finished;
    @field_list(1) port_t  port;
    @field_list(1) count_t accepted;
}

// One table entry's worth of slots, one per bank; expected 0 means none.
struct slots_t {
    slot_t  slot0;
    count_t expected0;
    slot_t  slot1;
    count_t expected1;
    slot_t  slot2;
    count_t expected2;
    slot_t  slot3;
    count_t expected3;
    slot_t  slot4;
    count_t expected4;
    slot_t  slot5;
    count_t expected5;
    slot_t  slot6;
    count_t expected6;
    slot_t  slot7;
    count_t expected7;
}

#ifdef STRAWMAN
// How many slots of each bank may be handed out.
struct limits_t {
    slot_t limit0;
    slot_t limit1;
    slot_t limit2;
    slot_t limit3;
    slot_t limit4;
    slot_t limit5;
    slot_t limit6;
    slot_t limit7;
}
#endif

struct metadata_t {
    loop_t       loop;
    outcome_t    outcome;
    // Session
    bit<32>      plan;
    worker_set_t members;
    // Tier
    port_t       above_port;     // to the switch above that collects the barrier; 0: none
    bit<32>      switch_number;  // what this switch is called there
    worker_set_t elsewhere;      // workers that are behind other switches only
    bit<1>       leaves_below;   // whether the neighbours below are switches
    bit<1>       look_again;     // at the slot here, whose part may have been lost above
    // Worker
    bit<1>       from_above;
    bit<1>       is_worker;
    worker_t     worker;
    worker_set_t worker_bit;
    // Source
    port_t       source_port;
    bit<32>      source_index;
    // Destination
    port_t       destination_port;
    bit<4>       destination_bank;
    slot_t       destination_slot;
    count_t      destination_expected;
    port_t       destination_above;  // to the switch above that completes the sum; 0: this does
    tag_t        tag;
    // Fanout
    slots_t      slots;
    bit<4>       last_bank;
    bit<1>       last_hop;
    count_t      count;
    // Banks
    bit<96>      oldest;  // the least and the largest state of a slot of this tag
    bit<96>      newest;
    lanes_t      sum;
    count_t      sum_count;
    bit<1>       completed;
    bit<4>       bank;
    slot_t       slot;
    bit<8>       contributions;
#ifdef STRAWMAN
    // Pool
    limits_t     limits;
    vertex_t     sum_sources;  // the ids of the sources in the sum, added up
    bit<1>       overflow;     // no slot was free: the feature itself leaves as it came
#endif
    // Result
    vertex_t     destination;
    port_t       result_port;
    bit<16>      result_group;
    bit<1>       partial;  // it goes up, and `destination` is the id of the partial sum
    // What leaves, decided in ingress and written in egress.
    bit<1>       send_sum;
    bit<1>       send_ack;
    bit<1>       send_missing;
    bit<1>       flood;
    bit<1>       update_ipv4;
    bit<1>       seal;
}

#endif
