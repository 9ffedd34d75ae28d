// The fate of a frame that a port received. Every frame is counted under exactly one
// outcome, on its first pass.
#pragma once

// Index of the counter.
typedef bit<5> outcome_t;
// No control has decided yet; at the end of its first pass such a packet is AGGREGATED.
const outcome_t PENDING = 31;
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
const outcome_t WRONG_SESSION   = 20;
const outcome_t WRONG_INCARNATION = 21;
const outcome_t WRONG_MAGNITUDE = 22;
const outcome_t WRONG_TAG      = 23;
const outcome_t WRONG_NEXT      = 24;
const outcome_t REDUCE_ADDED    = 25;
const outcome_t REDUCE_REPEATED = 26;
const outcome_t REDUCE_STALE    = 27;
const outcome_t REDUCE_ASKED    = 28;
const outcome_t NO_JOB          = 29;  // of a port that is in no job
// Cells of each job.
#define OUTCOME_BITS 5

// cell: of the job and the outcome.
control Outcome(in index_t cell) {
    COUNTER(JOB_CELLS << OUTCOME_BITS, outcome)

    apply {
        COUNT_ONE(outcome, cell)
    }
}
