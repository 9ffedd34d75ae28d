// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Entries as P4Runtime's answers to a Read have them, values as short as they go.
#pragma once

#include "formats.h"

// What a table holds at one moment.
struct Rows {
    u8* memory;
    u64 count;
};

struct Answer {
    std::vector<u8> bytes;

    void entries(const TableFormat& format, const u8* rows, u64 count) {
        bytes.clear();
        for (; count; count--, rows += format.table->records.stride) entry(format, rows);
    }

private:
    void number(u32 value) {
        for (; value >= 0x80; value >>= 7) bytes.push_back((u8)(value | 0x80));
        bytes.push_back((u8)value);
    }
    static u32 length(u32 value) {
        u32 size = 1;
        for (; value >= 0x80; value >>= 7) size++;
        return size;
    }
    // A message is written after the room of its length, which is mostly one or two bytes.
    size_t open(u32 tag) {
        number(tag);
        bytes.insert(bytes.end(), 2, 0);
        return bytes.size();
    }
    void close(size_t begin) {
        const u32 size = (u32)(bytes.size() - begin), needed = length(size);
        if (needed > 2) bytes.insert(bytes.begin() + (long)begin, needed - 2, 0);
        else if (needed < 2) bytes.erase(bytes.begin() + (long)begin - 1);
        u8* to = bytes.data() + begin - 2;
        for (u32 rest = size; ; rest >>= 7) {
            *to++ = (u8)(rest & 0x7F) | (rest >= 0x80 ? 0x80 : 0);
            if (rest < 0x80) break;
        }
    }

    void entry(const TableFormat& format, const u8* row) {
        const Records& records = format.table->records;
        const Entry* const entry = (const Entry*)(row + records.key_bytes + records.counts_bytes);
        const size_t entity = open(wire::ENTITIES), table_entry = open(wire::TABLE_ENTRY);
        number(wire::TABLE_ID);
        number(format.id);
        for (const FieldFormat& field : format.fields) match(field, row);
        if (const ActionFormat* action = format.by_number(entry->action)) table_action(*action, entry->data);
        if (entry->marks & CONSTANT) {
            number(wire::IS_CONST);
            number(1);
        }
        close(table_entry);
        close(entity);
    }
    void match(const FieldFormat& field, const u8* key) {
        const size_t match = open(wire::MATCH);
        number(wire::FIELD_ID);
        number(field.id);
        const size_t exact = open(wire::EXACT);
        value(wire::EXACT_VALUE, field, key);
        close(exact);
        close(match);
    }
    void table_action(const ActionFormat& format, const u8* data) {
        const size_t table_action = open(wire::ACTION), action = open(wire::TABLE_ACTION);
        number(wire::ACTION_ID);
        number(format.id);
        for (const FieldFormat& field : format.parameters) {
            const size_t parameter = open(wire::PARAMETER);
            number(wire::PARAMETER_ID);
            number(field.id);
            value(wire::PARAMETER_VALUE, field, data);
            close(parameter);
        }
        close(action);
        close(table_action);
    }
    void value(u32 tag, const FieldFormat& field, const u8* from) {
        u32 size = (field.width + 7) / 8;
        while (size > 1 && !byte(field, from, size - 1)) size--;
        number(tag);
        number(size);
        for (u32 i = size; i--;) bytes.push_back(byte(field, from, i));
    }
    // Byte i of a field, counted from the least significant one.
    static u8 byte(const FieldFormat& field, const u8* from, u32 i) {
        const u32 bit = field.shift + 8 * i, left = field.width - 8 * i;
        const u32 rest = bit % 8, wanted = left < 8 ? left : 8;
        u32 bits = from[bit / 8] >> rest;
        if (rest + wanted > 8) bits |= (u32)from[bit / 8 + 1] << (8 - rest);
        return (u8)(bits & ((1u << wanted) - 1));
    }
};
