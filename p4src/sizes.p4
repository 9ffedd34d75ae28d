// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Sizes and fixed numbers of the program. Every table and register takes its size from
// here; the Python side reads them from the compiled program.
#ifndef _SIZES_
#define _SIZES_

// Aggregator memory, in bytes of feature data. The paper's testbed switch has
// 10 MB. One slot of a bank holds 32 lanes of 32 bits. A wider fragment takes the slots of
// several banks.
const bit<32> SLOT_MEMORY_BYTES = 10485760;

// A pass of a packet may touch each bank once, the rule of the hardware that
// the paper recirculates for. Eight banks are eight additions per pass.
const bit<32> BANKS = 8;
const bit<32> SLOTS_PER_BANK = SLOT_MEMORY_BYTES / 128 / BANKS;
// Slots of the all-reduce, behind those of plans; each goes across all banks. Their number is a power
// of two, and SwitchML's for links of 100 Gbit/s.
const bit<32> REDUCE_SLOTS = 512;
// Bits of a slot's number in its bank; no more than needed, as each entry has eight of them.
// A main file may define more.
#ifndef SLOT_BITS
#define SLOT_BITS 14
#endif
const bool SLOTS_HAVE_NUMBERS = static_assert(SLOTS_PER_BANK + REDUCE_SLOTS <= 32w1 << SLOT_BITS,
                                              "SLOT_BITS is too small for SLOTS_PER_BANK");

const bit<32> MAX_SOURCES = 1 << 18;
const bit<32> MAX_ENTRIES = 1 << 22;
const bit<32> MAX_RESULTS = 1 << 20;
const bit<32> MAX_WORKERS = 128;
const bit<32> MAX_PORTS = 256;
const bit<32> MAX_STATIONS = 1024;

// Virtual ports: packets sent there are recirculated. BMv2 gives each port an egress queue of
// 64 packets, so one port would lose longer bursts: there are 2^LOOP_LANE_BITS.
// https://github.com/p4lang/behavioral-model/blob/main/docs/simple_switch.md
const bit<9> FIRST_LOOP_PORT = 256;
#define LOOP_LANE_BITS 5

// The neighbours below, and those that a broadcast reaches.
const bit<16> ALL_WORKERS_GROUP = 1;
const bit<16> ALL_STATIONS_GROUP = 2;

#endif
