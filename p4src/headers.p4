// Sizes, types and headers. docs/protocol.md draws the headers.
#pragma once

// What v1model and a Tofino do not have alike, behind names that the programs for both use: here
// v1model's, in tofino/chip.p4 the Tofino's, and in tofino/emulation.p4 what only the Tofino program
// needs, on v1model.
#include <core.p4>
#ifndef T2NA
#include <v1model.p4>

#define DROP(standard_metadata) mark_to_drop(standard_metadata);
#define GO_AROUND(fields) recirculate_preserving_field_list(fields);
#define COUNT_ONE(name, cell) name.count((bit<32>) (cell));
#define COUNTER(size, name) counter(size, CounterType.packets) name;
#define ONE_ACTION(name, ...) action name() { __VA_ARGS__ } apply { name(); }

#define REGISTER(size, name) register<bit<64>>(size) name;
// A register action changes `value`, a pair of words, and gives back what it found.
#define BODY(register, ...) \
        bit<64> cell; \
        pair_t value; \
        register.read(cell, (bit<32>) cell_number); \
        value.hi = cell[63:32]; \
        value.lo = cell[31:0]; \
        __VA_ARGS__ \
        register.write((bit<32>) cell_number, value.hi ++ value.lo);
#define FLAG(register, name, ...) \
    action name(in index_t cell_number, out flag_t one) { BODY(register, __VA_ARGS__) }
#define RUN(name, index, one) name(index, one);
#endif

// Every table and register takes its size from here; the Python side reads them from the
// compiled program.

#ifndef TOFINO
// Aggregator memory, in bytes of feature data. The paper's testbed switch has
// 10 MB. One slot of a bank holds 32 lanes of 32 bits. A wider fragment takes the slots of
// several banks.
const bit<32> SLOT_MEMORY_BYTES = 10485760;

// A pass of a packet may touch each bank once, the rule of the hardware that
// the paper recirculates for. Eight banks are eight additions per pass.
#define BANKS 8
// DO(b) for all banks, or chunks of a packet. A chain of conditions ends without one for the last.
#define BUT_THE_LAST_BANK(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6)
#define EACH_BANK(DO) BUT_THE_LAST_BANK(DO) DO(7)
const bit<32> SLOTS_PER_BANK = SLOT_MEMORY_BYTES / 128 / BANKS;

const bit<32> MAX_SOURCES = 1 << 18;
const bit<32> MAX_ENTRIES = 1 << 22;
const bit<32> MAX_RESULTS = 1 << 20;
#endif
// Jobs share the switch and have numbers from 1; packets of ports without a job have number 0.
const bit<32> MAX_JOBS = 16;
const bit<32> JOB_CELLS = MAX_JOBS + 1;
// Slots of a job's all-reduce, a power of two: SwitchML's number for links of 10 Gbit/s. Those of all
// jobs are behind the slots of plans; each goes across all banks.
#define REDUCE_SLOT_BITS 7
const bit<32> REDUCE_SLOTS = 1 << REDUCE_SLOT_BITS;
const bit<32> ALL_REDUCE_SLOTS = MAX_JOBS << REDUCE_SLOT_BITS;
// Bits of a slot's number in its bank; no more than needed, as each entry has eight of them.
// A main file may define more.
#ifndef SLOT_BITS
#define SLOT_BITS 14
#endif
const bool SLOTS_HAVE_NUMBERS = static_assert(SLOTS_PER_BANK + ALL_REDUCE_SLOTS <= 32w1 << SLOT_BITS,
                                              "SLOT_BITS is too small for SLOTS_PER_BANK");

const bit<32> MAX_WORKERS = 128;
// Parts of the slots, each with a unit of its own in flight: 2 bits of the header.
const bit<32> MAX_POOLS = 4;
const bit<32> MAX_PORTS = 256;
const bit<32> MAX_STATIONS = 1024;

// Virtual ports: packets sent there are recirculated. BMv2 gives each port an egress queue of
// 64 packets, so one port would lose longer bursts: each job has 2^LOOP_LANE_BITS. No job shares
// one with another, so a job's packets in the loop never queue behind another's.
// https://github.com/p4lang/behavioral-model/blob/main/docs/simple_switch.md
const bit<9> FIRST_LOOP_PORT = 256;
#define LOOP_LANE_BITS 3

// Of each job the groups of the neighbours below, and of those that a broadcast reaches.
const bit<16> WORKERS_GROUP = 0;
const bit<16> STATIONS_GROUP = 1;
#define GROUP_OF(meta, group) (meta.own.groups + group)

typedef bit<9>    port_t;
typedef bit<32>   vertex_t;
typedef bit<16>   worker_t;
typedef bit<SLOT_BITS> slot_t;
typedef bit<16>   count_t;
typedef bit<128>  worker_set_t;
typedef bit<8>    session_t;
// What a stateful ALU reads and writes, and what it finds: 0 or 1.
struct pair_t {
    bit<32> hi;
    bit<32> lo;
}
typedef bit<8> flag_t;
// Of a cell.
#ifdef TOFINO
typedef bit<16> index_t;
#else
typedef bit<32> index_t;
#endif
#ifndef TOFINO
typedef bit<1024> lanes_t;  // of one bank
#endif
typedef bit<2>    pool_t;
typedef bit<5>    job_t;
typedef bit<5>    width_t;
typedef bit<2>    bits_t;  // of a lane in a body
typedef bit<2>    rows_t;  // a frame has 2^rows of them
typedef bit<8>    exponent_t;  // of a group of fragments of an all-reduce
// session ++ round ++ fragment ++ block ++ pool ++ width: one number that only grows, as a round has
// all blocks of a fragment before those of the next one.
typedef bit<80>   tag_t;
typedef bit<48>   round_t;  // session ++ round
#define SESSION_OF(tag) tag[79:64]
#define ROUND_OF(tag)   tag[79:32]
// The least state of a slot of a tag: the tag without its zeros ++ whether any contribution was marked,
// in 8 bits ++ contributions.
#define EMPTY_OF(tag) (tag[79:64] ++ tag[55:0] ++ 24w0)
#define NUMBER_OF(tag)  tag[63:32]  // the round alone
// The tag of block 0 of the same round, in the same pool.
#define START_OF(tag) (tag[79:32] ++ 25w0 ++ tag[6:5] ++ 5w0)

const bit<16> ETHERTYPE_IPV4         = 0x0800;
const bit<16> ETHERTYPE_VLAN         = 0x8100;
const bit<16> ETHERTYPE_SERVICE_VLAN = 0x88a8;
// "Use for experimentation and testing", RFC 3692.
const bit<8>  PROTOCOL_SWITCHGNN = 253;
const bit<4>  SWITCHGNN_VERSION  = 5;
// Of features and sums; of early and late parts of an all-reduce: CS1 and LE (RFC 8622); of packets
// without numbers: CS6, network control (RFC 4594). For networks that keep classes apart as this switch
// does. The same values are in host/wire/addresses.py.
const bit<6>  DSCP_DEFAULT = 0;
const bit<6>  DSCP_EARLY = 8;
const bit<6>  DSCP_LATE = 1;
const bit<6>  DSCP_CONTROL = 48;
// The bits of the largest finite float32; above it are infinity, NaN, and negatives.
const bit<32> LARGEST_FLOAT      = 0x7f7fffff;

// A frame carries 1 + width groups of 8 lanes. A bank holds 32 lanes; more take 2, 4 or 8 banks side
// by side.
const width_t LANES_8 = 0;
const width_t LANES_16 = 1;
const width_t LANES_32 = 3;
const width_t LANES_64 = 7;
const width_t LANES_128 = 15;
const width_t LANES_256 = 31;
// The groups of 8 words in a body.
#define GROUPS(width, bits) (((bit<6>) width + (6w1 << bits)) >> bits)

// The bits of each lane of a FEATURE or SUM; without a body all lanes are 0. Fewer bits make a body
// shorter, or are not used. In a RECALL, other bits than 32 allow the sum to have fewer.
const bits_t BITS_32 = 0;
const bits_t BITS_16 = 1;
const bits_t BITS_8 = 2;
const bits_t NO_BODY = 3;

// IPv4's total length of a packet without a body, and of a WAITING.
const bit<16> BARE_LENGTH = 20 + 26;
const bit<16> WAITING_LENGTH = BARE_LENGTH + 28 + 16;

// A bundle is a frame of 2, 4 or 8 rows side by side, as the plan says; its body is full width. As a
// feature, it has an id from 3 * 2^30 on; as a sum, a header with the destinations, and in Dst_id
// the worker.
const vertex_t SUM_BUNDLES = 0xffffff00;
#define IS_BUNDLE(id) (id[31:30] == 3)
// Source ids from 2^31 on are partial sums; a feature of one names its destination.
#define IS_PARTIAL(id) (id[31:30] == 2)
// A feature of a vertex, on its way into slots.
#define IS_PLAIN_FEATURE(header) \
    (header.kind == kind_t.FEATURE && header.resend == 0 && !IS_PARTIAL(header.src_id))

// Count of a WAITING: why the switch refuses a `done`.
const count_t REFUSAL_NONE        = 0;
const count_t REFUSAL_INCARNATION = 1;
const count_t REFUSAL_MAGNITUDE   = 2;
const count_t REFUSAL_TAG        = 3;
const count_t REFUSAL_NEXT        = 4;
// The culprit of a refusal that has none.
const bit<32> NOBODY = 0xffffffff;

enum bit<4> kind_t {
    FEATURE = 1,  // upwards: a feature, or a partial sum of Count of them
    SUM     = 2,  // switch to worker: a complete sum of Count contributions
    DONE    = 3,  // worker to switch: it has all sums of this block; leaf to spine: its workers have
    ADVANCE = 4,  // switch to worker: all workers are done with this block
    WAITING = 5,  // switch to worker: not all are; the header has those that are
    ACK     = 6,  // switch to worker: this feature has been through all its slots
    RECALL  = 7,  // worker to switch: repeat the sum of this vertex; spine to leaf: its part
    MISSING = 8,  // switch to worker: that sum is not complete
    FETCH   = 9,  // worker to worker: send the feature for the sum of this vertex
    NOTICE  = 10, // worker to all workers: packets arrive marked, send more slowly
    REDUCE  = 11, // upwards: Count contributions to a fragment of an all-reduce
    REDUCED = 12, // switch to workers: their sum; worker to workers: the same, to one that lacks it
    REDUCING = 13 // worker to switch: who has contributed? switch to worker: these have
}

#define HAS_NUMBERS(kind) \
    (kind == kind_t.FEATURE || kind == kind_t.SUM || kind == kind_t.REDUCE \
     || kind == kind_t.REDUCED)
// Round and Block_id are the number of a fragment, Feature_group an exponent.
#define IS_REDUCE(header) \
    (header.kind == kind_t.REDUCE || header.kind == kind_t.REDUCED \
     || header.kind == kind_t.REDUCING)

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
    bits_t   bits;
    bit<1>   level;
    bit<1>   echo;
    bit<9>   fragment;
    pool_t   pool;
    width_t  width;
    bit<16>  feature_group;  // features that are acknowledged together
#ifdef TOFINO
    bit<32>  turn;           // session ++ round
    bit<32>  checksum;
#else
    session_t session;       // the lower bits of the install's number
    bit<24>  round;
    bit<32>  checksum;
#endif
}

// Follows the SwitchGNN header in a bundle of sums: of each row the place of
// its destination among those of its worker in the block, NO_PLACE if there is no such row.
header places_t {
    bit<128> places;
}
const bit<128> NO_PLACES = 0xffffffff_ffffffff_ffffffff_ffffffff;

// Follows the SwitchGNN header in DONE, ADVANCE, WAITING and REDUCING.
header barrier_t {
    bit<32>      magnitude;  // float32 bits; the largest of the round
    bit<32>      plan;       // the first 32 bits of the plan's digest
    bit<32>      round;      // the switch's current round
    worker_set_t workers;    // those that are done; in a DONE: the sender's heartbeat
}

// Follows barrier_t in WAITING and REDUCING.
header waiting_t {
    worker_set_t heartbeats; // the latest of each worker
}

#ifndef TOFINO
// Follow the SwitchGNN header in FEATURE, SUM, REDUCE and REDUCED: chunks, and the rest.
header chunk_t {
    lanes_t lanes;
}

header lanes8_t {
    bit<256> lanes;
}

header lanes16_t {
    bit<512> lanes;
}

header lanes24_t {
    bit<768> lanes;
}

// The lanes of the widest packet, by banks.
#define CHUNK_LANES(c) lanes_t chunk##c;
struct chunks_t {
    EACH_BANK(CHUNK_LANES)
}

#define CHUNK_HEADER(c) chunk_t chunk##c;
struct headers_t {
    ethernet_t  ethernet;
    ipv4_t      ipv4;
    switchgnn_t switchgnn;
    places_t    places;
    EACH_BANK(CHUNK_HEADER)
    lanes8_t    lanes8;
    lanes16_t   lanes16;
    lanes24_t   lanes24;
    barrier_t   barrier;
    waiting_t   waiting;
}
#endif
