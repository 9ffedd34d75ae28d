// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The updates of a Write request, read from its bytes. Only what is written as everybody writes
// it, and right, is read here; what is odd in any way, or fails, is left to Python, which has the
// rules. Nothing is believed of a length but that it lies within the message around it.
#pragma once

#include "formats.h"

// Bytes that are read from front to back.
struct Span {
    const u8 *at, *end;

    bool empty() const { return at == end; }
    size_t size() const { return (size_t)(end - at); }
    // A number of at most 32 bits, written as short as it goes.
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
    // A message that is one part and nothing else.
    bool only(u32 tag, Span& inner) {
        u32 found;
        return number(found) && found == tag && part(inner) && empty();
    }
};

struct Batch {
    // `odd` ones are for Python; an entry's key and data are in `staged`.
    struct Item { u32 begin, length; bool odd; u8 kind; i32 action; const TableFormat* format; size_t place; };
    const Formats& formats;
    Span request;
    std::vector<Item> items;
    std::vector<u8> staged;
    std::vector<u8> rest;  // the request without the updates that were read

    Batch(const Formats& f, const u8* data, size_t size) : formats(f), request{data, data + size} {}

    // Whether the message around the updates is one that this can take apart.
    bool read() {
        if (request.size() >> 31) return false;
        // A byte may stand for a large key: more than this is left to Python.
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
            // Updates without contents would take more memory here than they have bytes.
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

    // Applies updates until one that Python has to; returns its place, or `to`.
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

    // The field with an id, which comes for the first time; mostly they come in order.
    static const FieldFormat* find(const std::vector<FieldFormat>& fields, u32 ident, u64& seen) {
        size_t place = (size_t)__builtin_popcountll(seen);
        if (place >= fields.size() || fields[place].id != ident)
            for (place = 0; place < fields.size() && fields[place].id != ident;) place++;
        if (place == fields.size() || seen >> place & 1) return nullptr;
        seen |= 1ull << place;
        return &fields[place];
    }

    // Puts the most significant byte last; leading zeros are allowed, nothing at all is not.
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
