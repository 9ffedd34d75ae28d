// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// How P4Runtime writes the entries of tables whose keys are exact:
// https://github.com/p4lang/p4runtime/blob/main/proto/p4/v1/p4runtime.proto
#pragma once

#include "tables.h"

struct FieldFormat {
    u32 id, width, shift;  // shift: bits behind it in the key, or in front of it in the parameters
};
struct ActionFormat {
    u32 id;
    i32 number;
    std::vector<FieldFormat> parameters;
};
struct TableFormat {
    u32 id;
    Table* table;
    u64 size;  // 0: any number of entries
    bool writable;
    std::vector<FieldFormat> fields;
    std::vector<ActionFormat> actions;

    const ActionFormat* by_id(u32 ident) const {
        for (const ActionFormat& each : actions)
            if (each.id == ident) return &each;
        return nullptr;
    }
    const ActionFormat* by_number(i32 number) const {
        for (const ActionFormat& each : actions)
            if (each.number == number) return &each;
        return nullptr;
    }
};

struct Formats {
    std::vector<TableFormat> tables;

    const TableFormat* by_id(u32 ident) const {
        for (const TableFormat& each : tables)
            if (each.id == ident) return &each;
        return nullptr;
    }
};

// Reads formats as native/batches.py numbers them.
struct FormatNumbers {
    const u64* at;

    u64 next() { return *at++; }
    std::vector<FieldFormat> fields() {
        std::vector<FieldFormat> read(next());
        for (FieldFormat& each : read) each = {(u32)at[0], (u32)at[1], (u32)at[2]}, at += 3;
        return read;
    }
    template <class Tables> Formats* formats(const Tables& table) {
        Formats* const made = new Formats;
        for (u64 tables = next(); tables; tables--) {
            TableFormat format = {(u32)at[0], table((int)at[1]), at[2], at[3] != 0, {}, {}};
            at += 4;
            format.fields = fields();
            for (u64 actions = next(); actions; actions--) {
                ActionFormat action = {(u32)at[0], (i32)at[1], {}};
                at += 2;
                action.parameters = fields();
                format.actions.push_back(action);
            }
            made->tables.push_back(format);
        }
        return made;
    }
};

// Fields of protobuf messages as they are written: https://protobuf.dev/programming-guides/encoding
constexpr u32 number_tag(u32 field) { return field << 3; }
constexpr u32 bytes_tag(u32 field) { return field << 3 | 2; }

namespace wire {
constexpr u32 UPDATES = bytes_tag(4);                                   // of WriteRequest
constexpr u32 TYPE = number_tag(1), ENTITY = bytes_tag(2);              // of Update
constexpr u32 ENTITIES = bytes_tag(1);                                  // of ReadResponse
constexpr u32 TABLE_ENTRY = bytes_tag(2);                               // of Entity
constexpr u32 TABLE_ID = number_tag(1), MATCH = bytes_tag(2);           // of TableEntry
constexpr u32 ACTION = bytes_tag(3), IS_CONST = number_tag(12);         // of TableEntry
constexpr u32 FIELD_ID = number_tag(1), EXACT = bytes_tag(2);           // of FieldMatch
constexpr u32 EXACT_VALUE = bytes_tag(1);                               // of FieldMatch.Exact
constexpr u32 TABLE_ACTION = bytes_tag(1);                              // of TableAction
constexpr u32 ACTION_ID = number_tag(1), PARAMETER = bytes_tag(4);      // of Action
constexpr u32 PARAMETER_ID = number_tag(2), PARAMETER_VALUE = bytes_tag(3);  // of Action.Param
enum Kind { INSERT = 1, MODIFY = 2, DELETE = 3 };
}  // namespace wire
