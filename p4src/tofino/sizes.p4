// The sizes of the Tofino program. A register is in one stage, whose 48 map RAMs hold 2,048 pairs
// each; a stage has four stateful ALUs, each with a register of its own.
#pragma once

#define TOFINO

// One slot per pass, of 64 lanes: 4 MB.
#define BANKS 1
#define EACH_BANK(DO) DO(0)
const bit<32> SLOTS_PER_BANK = 16384;
#define SLOT_BITS 16

// Of each pool.
const bit<32> MAX_SOURCES = 1 << 14;
const bit<32> MAX_ENTRIES = 1 << 17;
const bit<32> MAX_RESULTS = 1 << 16;

// What a stateful ALU gives.
#define ONE , out bit<32> one
#define TWO ONE, out bit<32> two
#define THREE TWO, out bit<32> three
#define FOUR THREE, out bit<32> four
#define ONE_16 , out bit<16> one
#define TWO_16 ONE_16, out bit<16> two
