// What the controls of the Tofino program know of the current packet.
#pragma once

#include "sizes.p4"
#include "../metadata.p4"

// What a pass does. A packet arrives in any pipe, where tables say all that needs no state. A feature goes
// on in the pipe of the loop, which has the slots, and a `done` or a part of an all-reduce in a pipe with
// sets, which also has ports.
enum bit<8> step_t {
    ARRIVE  = 0,
    FIRST   = 1,  // all checks, and the slots of the first hop
    HOP     = 2,  // the next slots of a feature
    FINISH  = 3,  // its acknowledgement
    HARVEST = 4,  // the sum of a slot that completed before the last hop, beside the feature
    COLLECT = 5,  // a `done` that has been checked, or ADVANCE from above
    LATE    = 6,  // a `done` of an earlier tag
    MOVE    = 7,  // the last one: the window of features
    CLOSE   = 8,  // the window of `done`, and the answer to all
    REDUCE  = 9,  // a part of a fragment, before its slot
    REPORT  = 10  // who has contributed
}

// What a copy for a port becomes. From WITHOUT_BODY on it loses its lanes.
enum bit<8> leave_t {
    AS_IT_IS     = 0,
    SUM          = 1,
    REDUCED      = 2,
    PART         = 3,  // the sum of a leaf
    FETCH        = 4,
    ADVANCE      = 5,
    WAITING      = 6,
    WITHOUT_BODY = 0x80,
    ACK          = 0x81,
    MISSING      = 0x82,
    ASK          = 0x83  // MISSING to the one that asked, the recall to others
}

const bit<8> SUM_ACKNOWLEDGES = 1;  // the sender's feature
const bit<8> DONE_AGAIN = 2;        // only its worker waits for the answer
const bit<8> FLOODS = 4;            // but not back

// Of each job, behind the ports of the other loop.
const port_t FIRST_SET_PORT = 384;

// What a packet brings along, to the egress and around the loop.
CARRIED loop_t {
    KEPT step_t   step;
    KEPT leave_t  leave;
    KEPT bit<8>   flags;       // one of those above
    KEPT bit<1>   any_time;    // TagWindow lets it pass
    KEPT bit<1>   look_again;  // this switch's part of a sum that is missing above
    KEPT bit<1>   plain;       // a feature of a vertex, on its way into slots
    KEPT outcome_t verdict;    // of the tables, if the tag may pass
    // Arrival
    KEPT bit<16>  block;       // among those of all jobs
    KEPT bit<32>  tag_hi;      // session ++ round
    KEPT bit<32>  tag_lo;      // fragment ++ block ++ pool ++ width; of a sum that leaves, its part
    KEPT index_t  first_slot;  // of the job and its pool
    KEPT index_t  cell;        // of registers with one cell per job
    KEPT index_t  pool;        // of registers with one per pool
    KEPT index_t  worker;      // of the sender
    KEPT index_t  source;
    KEPT slot_t   slot;        // that the packet names by its destination
    KEPT count_t  expected;
    KEPT bit<16>  group;       // where the verdict sends it; a `done`, to all workers of its job
    KEPT bit<5>   pad;
    KEPT bit<1>   marked;      // a contribution to the sum that leaves
    KEPT bit<1>   no_window;   // a leaf that was restarted knows none
    KEPT port_t   to;          // if not to a group; of a `done`, its port in the loop
    KEPT bit<1>   any_tag;
    KEPT bit<6>   dscp;
    KEPT port_t   port;        // that it came from
    KEPT bit<7>   pad_too;
    KEPT port_t   lane;        // of the loop
    // Pass
    KEPT bit<16>  hop;
    KEPT bit<16>  accepted;    // of an answer to a `done`, the session
    KEPT vertex_t destination; // of an answer to a `done`, a worker
    KEPT count_t  count;       // of a sum, or of what the slot of a missing one has
}

// What a group does with lanes.
enum bit<3> operation_t {
    NOTHING  = 0,
    SET      = 1,
    ADD      = 2,
    MAX      = 3,
    ADD_TAKE = 4,
    MAX_TAKE = 5,
    TAKE     = 6
}

// What the barrier's controls work with.
struct work_t {
    worker_set_t before;   // those that were in the set
    worker_set_t after;    // and those that are
    worker_set_t beats;    // to raise or lower, and then those of all
    index_t cell;          // of the set
    index_t beat;          // and of the heartbeats
    bit<1>  adds;          // its worker to the set
    bit<1>  looks;         // at the set
    bit<1>  hears;         // heartbeats
    bit<1>  first;
    bit<32> early_features; bit<32> following_first; bit<32> following_next; bit<32> known;
    bit<32> largest; bit<32> later; bit<32> learned; bit<32> magnitude_differs; bit<32> newer;
    bit<32> newest_hi; bit<32> newest_lo; bit<32> newest_round; bit<32> number; bit<32> other_round; bit<32> other_session;
    bit<32> reporter; bit<32> round_differs; bit<32> same; bit<32> tag_hi; bit<32> tag_lo;
    bit<32> unused; bit<32> window; bit<32> window_newer; bit<32> window_same;
    bit<32> window_session;
}

struct metadata_t {
    loop_t       loop;
    work_t       work;
    outcome_t    outcome;
    bit<1>       decides;     // in this pass the outcome is counted
    own_t        own;
    // Jobs
    bit<16> block; bit<16> last_block;
    index_t      first_slot;
    // Session
    bit<16>      session;
    bit<32>      session_start;
    count_t      reduces;
    bit<8>       width;
    bit<32> plan; bit<32> magnitude_limit;
    worker_set_t members;
    bit<1>       any_tag;
    bit<8>       last_pool;
    bit<8>       pool_above;  // not 0: there is no such pool
    rows_t       rows;
    index_t      pool_slots;
    bit<1>       other_session;
    // Tier
    port_t       above_port;
    bit<32>      switch_number;
    worker_set_t elsewhere;
    bit<1>       leaves_below;
    // Worker
    bit<1> from_above; bit<1> is_worker;
    worker_t     worker;
    worker_set_t worker_bit;
    // TagWindow
    bit<1> window_known; bit<1> beyond_window;
    bit<1>       passed;      // all are done with this tag
    bit<1>       closed;      // the round has begun
    bit<1>       disagrees;   // on what comes next
    bit<1>       wrong_incarnation;
    // Collected
    bit<1> complete; bit<1> repeated;
    port_t       set_port;     // in the loop to the pipe of sets
    // Source and Destination
    port_t       source_port;
    index_t      source_index;
    port_t       destination_port;
    bit<4>       destination_bank;
    slot_t       destination_slot;
    count_t      destination_expected;
    port_t       destination_above;
    bit<16>      destination_group;
    bit<1>       allowed;      // to contribute to the destination
    bit<1> unknown_source; bit<1> unknown_destination; bit<1> unknown_block;
    // Dedup
    bit<32>      newer;        // than the source's last tag
    bit<32>      same;
    // Fanout
    slots_t      slots;
    bit<4>       last_bank;
    bit<1>       last_hop;
    // Banks
    bit<4>       bank;
    slot_t       slot;
    operation_t  operation;
    bit<1>       touches_slots;
    bit<1>       looks;       // without a contribution
    bit<1>       takes;       // the sum leaves in this pass
    count_t      contribution;
    index_t      index;
    count_t      count;
    bit<16>      mark;
    bit<1>       completed;
    // Result
    vertex_t destination; vertex_t partial;
    port_t       result_port;
    bit<16>      result_group;
    bit<1>       to_replicas;
    worker_t     result_worker;
    bit<16> result_place; bit<16> result_sums;
    // The packet that leaves
    bit<1> send_sum; bit<1> send_ack; bit<1> send_missing; bit<1> flood; bit<1> update_ipv4;
    bit<1> seal;
}

// Compares tags as numbers: the outputs of a stateful ALU are 1 for a tag that is newer than that of
// the cell, and not 0 for the same. It has one output for a flag.
#define NEWER(value, meta) \
    (value.hi < meta.loop.tag_hi || (value.hi == meta.loop.tag_hi && value.lo < meta.loop.tag_lo))
#define SAME(value, meta) (value.hi == meta.loop.tag_hi && value.lo == meta.loop.tag_lo)
// The cell takes the packet's tag if that is newer.
#define CLAIM(register, name) \
    ALU_2(register, name, \
        one = 0; \
        two = 0; \
        if (SAME(value, meta)) { \
            two = value.hi; \
        } \
        if (NEWER(value, meta)) { \
            one = 1; \
            value.hi = meta.loop.tag_hi; \
            value.lo = meta.loop.tag_lo; \
        })
