// What becomes of two contributions to a slot: 32 lanes of a bank at once.
#pragma once

#include "metadata.p4"

// The top bit of each of the 32 lanes of a bank, and the other bits.
#define EIGHT_LANE_TOPS \
    256w0x80000000_80000000_80000000_80000000_80000000_80000000_80000000_80000000
#define LANE_TOPS \
    (EIGHT_LANE_TOPS ++ EIGHT_LANE_TOPS ++ EIGHT_LANE_TOPS ++ EIGHT_LANE_TOPS)
#define LANE_RESTS (~LANE_TOPS)

// Adds each lane modulo 2^32: without its top bit no lane carries into the next one, and the
// top bit of a sum is the exclusive or of the top bits and the carry.
#define PACKED_ADD(a, b) \
    ((((a) & LANE_RESTS) + ((b) & LANE_RESTS)) ^ (((a) ^ (b)) & LANE_TOPS))

// Of each lane the larger number, without signs. The rests of a and of the complement of b add up to
// the top bit where that of a is larger. A top bit then becomes all bits of its lane.
#define FIRST_IS_LARGER(a, b) \
    (((a) & ~(b)) | (((a) | ~(b)) & (((a) & LANE_RESTS) + (~(b) & LANE_RESTS))))
#define WHOLE_LANES(tops) (((((tops) & LANE_TOPS) >> 31) + LANE_RESTS) ^ LANE_RESTS)
#define PACKED_MAX(a, b) ((b) ^ (((a) ^ (b)) & WHOLE_LANES(FIRST_IS_LARGER(a, b))))

// Each operation has the numbers of fragments from its own first one on; sums have those below. The
// table of host/base/operations.py has the same numbers.
#define FIRST_MAXIMUM 256
#define COMBINE(fragment, total, addend) \
    if (fragment >= FIRST_MAXIMUM) { \
        total = PACKED_MAX(total, addend); \
    } else { \
        total = PACKED_ADD(total, addend); \
    }
