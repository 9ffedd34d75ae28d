// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Table entries in P4Runtime messages: updates of Write requests are read from their bytes, and
// responses to Read requests are written. Tables with exact keys only:
// https://github.com/p4lang/p4runtime/blob/main/proto/p4/v1/p4runtime.proto
#pragma once

#include "tables.h"


struct FieldFormat {
    u32 id, width, shift;  // shift: its lowest bit in the key or in the parameters
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

// Reads formats as format_numbers in native/state.py writes them.
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

// Tags of protobuf fields: https://protobuf.dev/programming-guides/encoding
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

// A message that is parsed. Lengths are checked against the message around.
struct Span {
    const u8 *at, *end;

    bool empty() const { return at == end; }
    size_t size() const { return (size_t)(end - at); }
    // A number of at most 32 bits in its shortest encoding.
    bool number(u32& value) {
        u64 read = 0;
        for (int shift = 0; shift < 35; shift += 7) {
            if (at == end) return false;
            const u8 byte = *at++;
            read |= (u64)(byte & 0x7F) << shift;
            if (byte < 0x80) {
                value = (u32)read;
                return read >> 32 == 0 && (byte || !shift);
            }
        }
        return false;
    }
    bool part(Span& inner) {
        u32 length;
        if (!number(length) || length > size()) return false;
        inner = {at, at + length};
        at += length;
        return true;
    }
    // A message with exactly one part.
    bool only(u32 tag, Span& inner) {
        u32 found;
        return number(found) && found == tag && part(inner) && empty();
    }
};

struct Batch {
    // `odd` updates are left to Python, which has all rules; the key and data of others are `staged`.
    struct Item { u32 begin, length; bool odd; u8 kind; i32 action; const TableFormat* format; size_t place; };
    const Formats& formats;
    Span request;
    std::vector<Item> items;
    std::vector<u8> staged;
    std::vector<u8> rest;  // the request with the odd updates only

    Batch(const Formats& f, const u8* data, size_t size) : formats(f), request{data, data + size} {}

    // False: the request cannot be parsed here.
    bool read() {
        if (request.size() >> 31) return false;
        // Small updates may need large keys: leave more than this to Python.
        const size_t most = 2 * request.size() + 4096;
        Span all = request;
        while (!all.empty()) {
            const u8* const begin = all.at;
            u32 tag;
            if (!all.number(tag) || tag < 8) return false;
            Span inner = {};
            if ((tag & 7) == 2) {
                if (!all.part(inner)) return false;
            } else if ((tag & 7) != 0 || !skip_number(all)) {
                return false;
            }
            // Empty updates would take more memory here than they have bytes.
            if (items.size() * 16 > (size_t)(all.at - request.at) + 65536) return false;
            if (tag == wire::UPDATES) {
                Item item = {(u32)(inner.at - request.at), (u32)inner.size(), true, 0, -1, nullptr, 0};
                const size_t before = staged.size();
                item.odd = before > most || !update(inner, item);
                if (item.odd) staged.resize(before);
                items.push_back(item);
                if (!item.odd) continue;
            }
            rest.insert(rest.end(), begin, all.at);
        }
        return true;
    }

    // Applies updates up to one left to Python; returns its place, or `to`.
    u64 apply(u64 from, u64 to) const {
        constexpr u64 AHEAD = 8;
        for (u64 i = from; i < to; i++) {
            if (i + AHEAD < to && !items[i + AHEAD].odd)
                items[i + AHEAD].format->table->prefetch(staged.data() + items[i + AHEAD].place);
            if (items[i].odd || !apply(items[i])) return i;
        }
        return to;
    }

private:
    static bool skip_number(Span& s) {
        for (int i = 0; i < 10 && !s.empty(); i++)
            if (*s.at++ < 0x80) return true;
        return false;
    }

    bool apply(const Item& item) const {
        Table& table = *item.format->table;
        const Records& records = table.records;
        const u8* const key = staged.data() + item.place;
        const u8* const data = key + records.key_bytes;
        const u32 known = table.find(key);
        if (item.kind == wire::INSERT) {
            if (known != NOWHERE || (item.format->size && records.used >= item.format->size)) return false;
            table.insert(key, item.action, 0, data, records.data_bytes);
            return true;
        }
        if (known == NOWHERE || records.entry(known)->marks) return false;
        if (item.kind == wire::MODIFY) records.set(known, item.action, 0, data, records.data_bytes);
        else table.remove(known);
        return true;
    }

    bool update(Span s, Item& item) {
        Span entity = {}, entry;
        u32 kind = 0;
        while (!s.empty()) {
            u32 tag;
            if (!s.number(tag)) return false;
            if (tag == wire::TYPE && !kind) {
                if (!s.number(kind) || kind < wire::INSERT || kind > wire::DELETE) return false;
            } else if (tag != wire::ENTITY || entity.at || !s.part(entity)) {
                return false;
            }
        }
        item.kind = (u8)kind;
        return kind && entity.at && entity.only(wire::TABLE_ENTRY, entry) && table_entry(entry, item);
    }

    bool table_entry(Span s, Item& item) {
        u32 tag, ident;
        if (!s.number(tag) || tag != wire::TABLE_ID || !s.number(ident)) return false;
        const TableFormat* const format = item.format = formats.by_id(ident);
        if (!format || !format->writable) return false;
        const Records& records = format->table->records;
        item.place = staged.size();
        staged.resize(item.place + records.key_bytes + records.data_bytes);
        u8* const key = staged.data() + item.place;
        u64 seen = 0;
        Span action = {};
        while (!s.empty()) {
            Span inner;
            if (!s.number(tag) || !s.part(inner)) return false;
            if (tag == wire::MATCH) {
                if (!match(inner, *format, seen, key)) return false;
            } else if (tag == wire::ACTION && !action.at) {
                action = inner;
            } else {
                return false;
            }
        }
        if (!all(seen, format->fields.size())) return false;
        if (!action.at) return item.kind == wire::DELETE;
        return table_action(action, item, key + records.key_bytes);
    }

    static bool match(Span s, const TableFormat& format, u64& seen, u8* key) {
        u32 tag, ident;
        Span exact, value;
        if (!s.number(tag) || tag != wire::FIELD_ID || !s.number(ident) || !s.only(wire::EXACT, exact)) return false;
        const FieldFormat* const field = find(format.fields, ident, seen);
        return field && exact.only(wire::EXACT_VALUE, value) && put(value, *field, key);
    }

    static bool table_action(Span s, Item& item, u8* data) {
        Span action;
        u32 tag, ident;
        if (!s.only(wire::TABLE_ACTION, action)) return false;
        if (!action.number(tag) || tag != wire::ACTION_ID || !action.number(ident)) return false;
        const ActionFormat* const format = item.format->by_id(ident);
        if (!format) return false;
        item.action = format->number;
        u64 seen = 0;
        while (!action.empty()) {
            Span parameter, value;
            if (!action.number(tag) || tag != wire::PARAMETER || !action.part(parameter)) return false;
            if (!parameter.number(tag) || tag != wire::PARAMETER_ID || !parameter.number(ident)) return false;
            const FieldFormat* const field = find(format->parameters, ident, seen);
            if (!field || !parameter.only(wire::PARAMETER_VALUE, value) || !put(value, *field, data)) return false;
        }
        return all(seen, format->parameters.size());
    }

    static bool all(u64 seen, size_t count) { return seen == (count < 64 ? (1ull << count) - 1 : ~0ull); }

    // The field with an id, unless already seen; fields mostly come in order.
    static const FieldFormat* find(const std::vector<FieldFormat>& fields, u32 ident, u64& seen) {
        size_t place = (size_t)__builtin_popcountll(seen);
        if (place >= fields.size() || fields[place].id != ident)
            for (place = 0; place < fields.size() && fields[place].id != ident;) place++;
        if (place == fields.size() || seen >> place & 1) return nullptr;
        seen |= 1ull << place;
        return &fields[place];
    }

    // Stores a big-endian value; it may have leading zeros but not be empty.
    static bool put(Span value, const FieldFormat& field, u8* place) {
        if (value.empty()) return false;
        while (!value.empty() && !*value.at) value.at++;
        const size_t size = value.size(), width = field.width;
        if (size > (width + 7) / 8) return false;
        if (size * 8 > width && *value.at >> (8 - (size * 8 - width))) return false;
        u8* to = place + field.shift / 8;
        const u32 rest = field.shift % 8;
        for (size_t i = size; i--; to++) {
            const u32 bits = (u32)value.at[i] << rest;
            to[0] |= (u8)bits;
            if (bits >> 8) to[1] |= (u8)(bits >> 8);
        }
        return true;
    }
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
    // A length is written after its message, whose place assumes two bytes for it.
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
    // Byte i of a field, from the least significant one.
    static u8 byte(const FieldFormat& field, const u8* from, u32 i) {
        const u32 bit = field.shift + 8 * i, left = field.width - 8 * i;
        const u32 rest = bit % 8, wanted = left < 8 ? left : 8;
        u32 bits = from[bit / 8] >> rest;
        if (rest + wanted > 8) bits |= (u32)from[bit / 8 + 1] << (8 - rest);
        return (u8)(bits & ((1u << wanted) - 1));
    }
};
