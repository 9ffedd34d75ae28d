// What the controls know of the current packet; each part is named after the control that sets it.
#pragma once

#include "headers.p4"
#include "outcome.p4"

// The count of a released slot. Counts saturate here, so that no later contribution can
// complete the slot.
const count_t RELEASED = 0xffff;

// Index of the counter `events` of a bank.
const bit<32> SLOT_COMPLETED = 0;
const bit<32> SLOT_STALE     = 1;  // the slot already belongs to a later block
const bit<32> SLOT_OVERFULL  = 2;  // more contributions than expected: never completes
const bit<32> SLOT_RELEASED  = 3;  // the worker sums this vertex itself
const bit<32> SLOT_EVENTS    = 4;

// Cells of each job in the counter of passes, one for each number of contributions.
#define PASS_BITS 4

// A table has no entry. On a Tofino tables are looked up before anything is decided.
#ifdef TOFINO
#define UNKNOWN(meta, found, what) meta.unknown_##what = 1;
#else
#define UNKNOWN(meta, found, what) meta.outcome = found;
#endif

// What is the job's own among the cells of registers and counters, and the groups, of all jobs.
struct own_t {
    job_t   job;
    index_t cell;          // of registers with one cell per job
    index_t pool;          // of registers with one per pool
    index_t worker;        // of the packet's worker
    index_t first_source;
    index_t first_reduce;  // slot of the all-reduce
    index_t first_outcome;
    bit<16> groups;        // the first one
}

#define SPEAKS_FOR_ITSELF(hdr, meta) \
    (meta.is_worker == 1 && hdr.switchgnn.src_id == (bit<32>) meta.worker)
#define OTHER_SESSION(hdr, meta) (hdr.switchgnn.session != meta.session[7:0])

// The slots of one table entry, one per bank, and the rows that are added; expected 0 means none.
#define SLOT(b) slot_t slot##b; count_t expected##b; bit<3> row##b;
struct slots_t {
    EACH_BANK(SLOT)
}

#ifndef TOFINO
// A sum that leaves.
struct sum_t {
    chunks_t lanes;
    count_t  count;  // contributions; of a bundle, its rows
    bit<1>   ecn;    // whether any of them was marked
    bit<128> places;  // of a bundle, see places_t
#ifdef STRAWMAN
    // The destination's worker must add the features that found no slot.
    vertex_t sources;   // the ids of those in the sum, added up
    bit<1>   overflow;  // no slot was free: the feature itself leaves
#endif
}

// The progress of a packet through its slots; kept when it recirculates.
struct loop_t {
    @field_list(1) bit<16> pass_number;
    @field_list(1) rows_t  rows;      // of a bundle; 0: there are none
    @field_list(1) bit<16> block;       // among those of all jobs
    @field_list(1) bit<32> first_slot;  // of the job and its pool, in each bank
    @field_list(1) bit<32> first_worker;
    @field_list(1) port_t  first_port;  // of the job, among those of the loop
    @field_list(1) bit<32> first_passes;  // its cells of the counter
    @field_list(1) bit<16> hop;
    @field_list(1) bit<4>  next_bank;
    @field_list(1) bit<1>  finished;
    @field_list(1) port_t  port;
    @field_list(1) count_t accepted;
    @field_list(1) bit<1>  narrow;    // whether a sum that it completes or recalls may be narrow
}

struct metadata_t {
    loop_t       loop;
    outcome_t    outcome;
    // Jobs
    own_t        own;
    // Session
    bit<16>      session;
    count_t      reduces;   // contributions to a sum of an all-reduce; 0: there is none
    width_t      width;     // of the widest frames, and of all slots
    bit<32> plan; bit<32> magnitude_limit;
    worker_set_t members;
    bit<1>       any_tag;
    pool_t       last_pool;
    // Tier
    port_t       above_port;     // to the switch above that collects the barrier; 0: none
    bit<32>      switch_number;  // the id of this switch there
    worker_set_t elsewhere;      // workers below other switches only
    bit<1>       leaves_below;   // whether the neighbours below are switches
    // Worker
    bit<1> from_above; bit<1> is_worker;
    worker_t     worker;
    worker_set_t worker_bit;
    // Ingress
    @field_list(1) width_t frame_width;  // of the unit's frames from and to workers, and in its tag
    @field_list(1) tag_t   tag;
    @field_list(1) bit<96> oldest;  // the least and the largest state of a slot of this tag
    @field_list(1) bit<96> newest;
    // TagWindow
    tag_t        barrier_tag;        // the latest tag whose barrier may be reported
    tag_t        feature_tag;       // the latest tag that features may have
    bit<1>       window_known;  // whether a barrier of this session is complete in the pool
    // RoundStart
    round_t      newest_round;  // the newest round
    bit<64>      largest;  // its largest magnitude ++ the worker of that
    bit<32>      reporter; // the worker of the packet's magnitude
    // Heartbeat
    worker_set_t heartbeats; // the latest of each worker
    // Source
    port_t       source_port;
    bit<32>      source_index;
    // Destination
    port_t       destination_port;
    bit<4>       destination_bank;
    slot_t       destination_slot;
    count_t      destination_expected;
    port_t       destination_above;  // to the switch above that completes the sum; 0: this does
    bit<16>      destination_group;  // of all that have a replica; 0: one worker awaits the sum
    // Partial
    worker_set_t partial_senders;
    // Passage
    bit<1>       look_again;  // the part in the slot here may have been lost on its way up
    // Reduce
    worker_set_t contributors;
    tag_t        newest_fragment;
    // Fanout
    slots_t      slots;
    bit<4>       last_bank;
    bit<1>       last_hop;
    // Recovery, Reduce and Ingress
    bit<1>       touches_slots;  // whether this pass goes through the banks
    bit<1>       adds;           // a feature on its way through its slots
    // Rows
    @field_list(1) rows_t rows;
    @field_list(1) bit<9> row_lanes;
    @field_list(1) bit<2> row_chunks;   // a row has 2^row_chunks
    @field_list(1) bit<3> last_of_row;  // the last chunk with lanes of the first row
    @field_list(1) bit<3> last_part;    // of a slot, from 0
    // Banks
#ifdef STRAWMAN
    @field_list(1) bit<48> now;  // when the packet came, in microseconds
#endif
    sum_t        sum;
    bit<1>       completed;
    bit<4>       bank;
    slot_t       slot;
    bit<32>      contributions;
    // Result
    vertex_t     destination;
    port_t       result_port;
    bit<16>      result_group;
    bit<1>       to_replicas;   // the group is of all that contribute
    worker_t     result_worker;
    bit<16>      result_place;  // among the destinations of the worker in the block
    bit<16>      result_sums;   // their number
    vertex_t     partial;  // the id of the partial sum that goes up; 0: the sum is complete
    // The packet that leaves; decided in ingress, written in egress.
    bit<1> send_sum; bit<1> send_ack; bit<1> send_missing; bit<1> send_reduced;
    bit<6>       dscp;
    bit<1>       flood;  // but not back
    bit<1> update_ipv4; bit<1> seal;
}
#endif
