// The names of ../headers.p4 and emulation.p4 on a Tofino 2.
#pragma once

#define T2NA
#include <core.p4>
#include <t2na.p4>

// The part of v1model's metadata that controls use.
struct standard_metadata_t {
    PortId_t ingress_port;
    PortId_t egress_spec;
    PortId_t egress_port;
    bit<16>  mcast_grp;
    bit<16>  egress_rid;
    bit<19>  enq_qdepth;
    bit<16>  packet_length;
    bit<3>   priority;
    bit<1>   checksum_error;
    bit<1>   drop;
    bit<16>  parser_error;
}
#define PARSER_FAILED(standard_metadata) (standard_metadata.parser_error != 0)
// Of a table with constant entries.
#define SIZE(entries) size = entries;
#define DROPPED 0x1ff
#define DROP(standard_metadata) standard_metadata.egress_spec = DROPPED;
#define DROP_COPY(standard_metadata) standard_metadata.drop = 1;
#define GO_AROUND(fields)

#define COUNT_ONE(name, cell) name.count(cell);
#define COUNTER(size, name) Counter<bit<32>, index_t>(size, CounterType_t.PACKETS) name;
// Steps that BMv2 does faster as one action.
#define ONE_ACTION(name, ...) apply { __VA_ARGS__ }

#define REGISTER(size, name) Register<pair_t, index_t>(size) name;
// Changes `value`, a pair of words, and gives up to four words back. Flags are 0 or 1.
#define ALU_N(action_t, pair, outs, register, name, ...) \
    action_t(register) name = { void apply(inout pair value outs) { __VA_ARGS__ } };
#define ACTION_0 RegisterAction<pair_t, index_t, bit<32>>
#define ACTION_2 RegisterAction2<pair_t, index_t, bit<32>, bit<32>>
#define ACTION_3 RegisterAction3<pair_t, index_t, bit<32>, bit<32>, bit<32>>
#define ACTION_4 RegisterAction4<pair_t, index_t, bit<32>, bit<32>, bit<32>, bit<32>>
#define ALU_0(register, name, ...) ALU_N(ACTION_0, pair_t, , register, name, __VA_ARGS__)
#define ALU(register, name, ...) ALU_N(ACTION_0, pair_t, ONE, register, name, __VA_ARGS__)
#define ALU_2(register, name, ...) ALU_N(ACTION_2, pair_t, TWO, register, name, __VA_ARGS__)
#define ALU_3(register, name, ...) ALU_N(ACTION_3, pair_t, THREE, register, name, __VA_ARGS__)
#define ALU_4(register, name, ...) ALU_N(ACTION_4, pair_t, FOUR, register, name, __VA_ARGS__)
#define ACTION_FLAG RegisterAction<pair_t, index_t, flag_t>
#define A_FLAG , out flag_t one
#define FLAG(register, name, ...) ALU_N(ACTION_FLAG, pair_t, A_FLAG, register, name, __VA_ARGS__)
// The same for a pair of 16 bits.
#define REGISTER_16(size, name) Register<halves_t, index_t>(size) name;
#define ACTION_16 RegisterAction<halves_t, index_t, bit<16>>
#define ACTION_16_2 RegisterAction2<halves_t, index_t, bit<16>, bit<16>>
#define ALU_16_0(register, name, ...) ALU_N(ACTION_16, halves_t, , register, name, __VA_ARGS__)
#define ALU_16(register, name, ...) ALU_N(ACTION_16, halves_t, ONE_16, register, name, __VA_ARGS__)
#define ALU_16_2(register, name, ...) \
    ALU_N(ACTION_16_2, halves_t, TWO_16, register, name, __VA_ARGS__)
#define RUN_0(name, index) name.execute(index);
#define RUN(name, index, one) one = name.execute(index);
#define RUN_2(name, index, one, two) one = name.execute(index, two);
#define RUN_3(name, index, one, two, three) one = name.execute(index, two, three);
#define RUN_4(name, index, one, two, three, four) one = name.execute(index, two, three, four);

// An action that sets bits side by side, by way of a hash: an instruction joins two containers.
#define JOIN(width, name, whole, ...) \
    Hash<bit<width>>(HashAlgorithm_t.IDENTITY) name##_hash; \
    action name() { whole = name##_hash.get({ __VA_ARGS__ }); }
#define JOIN_2(width, name, whole, a, b) JOIN(width, name, whole, a, b)
#define JOIN_3(width, name, whole, a, b, c) JOIN(width, name, whole, a, b, c)
#define JOIN_4(width, name, whole, a, b, c, d) JOIN(width, name, whole, a, b, c, d)

// What goes along to the egress and around the loop.
#define CARRIED header
#define KEPT
