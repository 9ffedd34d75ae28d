// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Adding up the 32 lanes of a bank at once.
#ifndef _PACKED_ADD_
#define _PACKED_ADD_

#include "headers.p4"

// The top bit of each of the 32 lanes, and the rest.
const bit<256> EIGHT_LANE_TOPS =
    0x80000000_80000000_80000000_80000000_80000000_80000000_80000000_80000000;
const lanes_t LANE_TOPS =
    EIGHT_LANE_TOPS ++ EIGHT_LANE_TOPS ++ EIGHT_LANE_TOPS ++ EIGHT_LANE_TOPS;
const lanes_t LANE_RESTS = ~LANE_TOPS;

// Adds each lane modulo 2^32: without its top bit no lane can carry into the
// next one, and the top bit of a sum is the exclusive or of what goes into it.
#define PACKED_ADD(a, b) \
    ((((a) & LANE_RESTS) + ((b) & LANE_RESTS)) ^ (((a) ^ (b)) & LANE_TOPS))

#endif
