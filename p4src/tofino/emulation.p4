// The names of chip.p4 on v1model: registers do no more than a stateful ALU, which changes one cell of
// two words, once in a pass.
#pragma once

#define PARSER_FAILED(standard_metadata) (standard_metadata.parser_error != error.NoError)
// Of a table with constant entries.
#define SIZE(entries)
#define DROPPED 511
#define DROP_COPY(standard_metadata) mark_to_drop(standard_metadata);
#define ALU_OF(outs, register, name, ...) \
    action name(in index_t cell_number outs) { BODY(register, __VA_ARGS__) }
#define ALU_0(register, name, ...) ALU_OF(, register, name, __VA_ARGS__)
#define ALU(register, name, ...) ALU_OF(ONE, register, name, __VA_ARGS__)
#define ALU_2(register, name, ...) ALU_OF(TWO, register, name, __VA_ARGS__)
#define ALU_3(register, name, ...) ALU_OF(THREE, register, name, __VA_ARGS__)
#define ALU_4(register, name, ...) ALU_OF(FOUR, register, name, __VA_ARGS__)
#define REGISTER_16(size, name) register<bit<32>>(size) name;
#define BODY_16(register, ...) \
        bit<32> cell; \
        halves_t value; \
        register.read(cell, (bit<32>) cell_number); \
        value.hi = cell[31:16]; \
        value.lo = cell[15:0]; \
        __VA_ARGS__ \
        register.write((bit<32>) cell_number, value.hi ++ value.lo);
#define ALU_16_OF(outs, register, name, ...) \
    action name(in index_t cell_number outs) { BODY_16(register, __VA_ARGS__) }
#define ALU_16_0(register, name, ...) ALU_16_OF(, register, name, __VA_ARGS__)
#define ALU_16(register, name, ...) ALU_16_OF(ONE_16, register, name, __VA_ARGS__)
#define ALU_16_2(register, name, ...) ALU_16_OF(TWO_16, register, name, __VA_ARGS__)
#define RUN_0(name, index) name(index);
#define RUN_2(name, index, one, two) name(index, one, two);
#define RUN_3(name, index, one, two, three) name(index, one, two, three);
#define RUN_4(name, index, one, two, three, four) name(index, one, two, three, four);

#define JOIN_2(width, name, whole, a, b) action name() { whole = a ++ b; }
#define JOIN_3(width, name, whole, a, b, c) action name() { whole = a ++ b ++ c; }
#define JOIN_4(width, name, whole, a, b, c, d) action name() { whole = a ++ b ++ c ++ d; }

#define CARRIED struct
#define KEPT @field_list(1)
