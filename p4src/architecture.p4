// What differs between v1model and a Tofino, behind names that both programs use. With T2NA, the
// sources in tofino/ are for a Tofino 2; without it they are the same controls for v1model, whose
// registers then do no more than a stateful ALU: change one cell of two words, once in a pass.
#pragma once

#include <core.p4>

#ifdef T2NA
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
    bit<16>  parser_error;
}
#define PARSER_FAILED(standard_metadata) (standard_metadata.parser_error != 0)
#define DROPPED 0x1ff
#define DROP(standard_metadata) standard_metadata.egress_spec = DROPPED;
#define GO_AROUND(fields)

#define COUNTER(size, name) Counter<bit<32>, bit<32>>(size, CounterType_t.PACKETS) name;
// Steps that BMv2 does faster as one action.
#define ONE_ACTION(name, ...) apply { __VA_ARGS__ }

#define REGISTER(size, name) Register<pair_t, bit<32>>(size) name;
// Changes `value`, a pair of words, and gives `one` and `other` back.
#define ALU_0(register, name, ...) \
    RegisterAction<pair_t, bit<32>, bit<32>>(register) name = { \
        void apply(inout pair_t value) { __VA_ARGS__ } \
    };
#define ALU(register, name, ...) \
    RegisterAction<pair_t, bit<32>, bit<32>>(register) name = { \
        void apply(inout pair_t value, out bit<32> one) { __VA_ARGS__ } \
    };
#define ALU_2(register, name, ...) \
    RegisterAction2<pair_t, bit<32>, bit<32>, bit<32>>(register) name = { \
        void apply(inout pair_t value, out bit<32> one, out bit<32> other) { __VA_ARGS__ } \
    };
#define ALU_3(register, name, ...) \
    RegisterAction3<pair_t, bit<32>, bit<32>, bit<32>, bit<32>>(register) name = { \
        void apply(inout pair_t value, out bit<32> one, out bit<32> other, \
                   out bit<32> third) { __VA_ARGS__ } \
    };
#define RUN_0(name, index) name.execute(index);
#define RUN(name, index, one) one = name.execute(index);
#define RUN_2(name, index, one, other) one = name.execute(index, other);
#define RUN_3(name, index, one, other, third) one = name.execute(index, other, third);

// What goes along to the egress and around the loop.
#define CARRIED header
#define KEPT
#else
#include <v1model.p4>

#define PARSER_FAILED(standard_metadata) (standard_metadata.parser_error != error.NoError)
#define DROP(standard_metadata) mark_to_drop(standard_metadata);
#define GO_AROUND(fields) recirculate_preserving_field_list(fields);
#define COUNTER(size, name) counter(size, CounterType.packets) name;
#define ONE_ACTION(name, ...) action name() { __VA_ARGS__ } apply { name(); }

#define REGISTER(size, name) register<bit<64>>(size) name;
#define BODY(register, ...) \
        bit<64> cell; \
        pair_t value; \
        register.read(cell, cell_number); \
        value.hi = cell[63:32]; \
        value.lo = cell[31:0]; \
        __VA_ARGS__ \
        register.write(cell_number, value.hi ++ value.lo);
#define ALU_0(register, name, ...) \
    action name(in bit<32> cell_number) { BODY(register, __VA_ARGS__) }
#define ALU(register, name, ...) \
    action name(in bit<32> cell_number, out bit<32> one) { BODY(register, __VA_ARGS__) }
#define ALU_2(register, name, ...) \
    action name(in bit<32> cell_number, out bit<32> one, out bit<32> other) { \
        BODY(register, __VA_ARGS__) \
    }
#define ALU_3(register, name, ...) \
    action name(in bit<32> cell_number, out bit<32> one, out bit<32> other, \
                out bit<32> third) { \
        BODY(register, __VA_ARGS__) \
    }
#define RUN_0(name, index) name(index);
#define RUN(name, index, one) name(index, one);
#define RUN_2(name, index, one, other) name(index, one, other);
#define RUN_3(name, index, one, other, third) name(index, one, other, third);

#define CARRIED struct
#define KEPT @field_list(1)
#endif

struct pair_t {
    bit<32> hi;
    bit<32> lo;
}
