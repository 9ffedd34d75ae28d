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
};

// The format with this id or number, as `member` says; null: there is none.
template <class Format, class Number>
const Format* format_with(const std::vector<Format>& formats, Number Format::*member, Number number) {
    for (const Format& each : formats)
        if (each.*member == number) return &each;
    return nullptr;
}

// Read from numbers as format_numbers in native/state.py writes them.
struct Formats {
    std::vector<TableFormat> tables;

    Formats(const u64* at, Table* const* all) {
        for (u64 left = *at++; left; left--) {
            TableFormat format = {(u32)at[0], all[at[1]], at[2], at[3] != 0, {}, {}};
            format.fields = fields(at += 4);
            for (u64 actions = *at++; actions; actions--) {
                ActionFormat action = {(u32)at[0], (i32)at[1], {}};
                action.parameters = fields(at += 2);
                format.actions.push_back(action);
            }
            tables.push_back(format);
        }
    }

private:
    static std::vector<FieldFormat> fields(const u64*& at) {
        std::vector<FieldFormat> read(*at++);
        for (FieldFormat& each : read) each = {(u32)at[0], (u32)at[1], (u32)at[2]}, at += 3;
        return read;
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

// A message that is read, whose fields are in the order of the P4Info; others are left to Python, which
// has all rules. Lengths are checked against the message around. Functions return false for what is not
// as expected.
struct Reader {
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
    bool part(Reader& inner) {
        u32 length;
        if (!number(length) || length > size()) return false;
        inner = {at, at + length};
        at += length;
        return true;
    }
    bool tagged(u32 tag) {
        u32 found;
        return number(found) && found == tag;
    }
    bool any_number(u32 tag, u32& value) { return tagged(tag) && number(value); }
    bool number(u32 tag, u32 expected) {
        u32 value;
        return any_number(tag, value) && value == expected;
    }
    template <class Body> bool message(u32 tag, const Body& body) {
        Reader inner;
        if (!tagged(tag) || !part(inner)) return false;
        std::swap(*this, inner);
        const bool good = body() && empty();
        *this = inner;
        return good;
    }
    // Stores a big-endian value; it may have leading zeros but not be empty.
    bool value(u32 tag, const FieldFormat& field, u8* place) {
        Reader value;
        if (!tagged(tag) || !part(value) || value.empty()) return false;
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

// Writes messages one after the other.
struct Writer {
    std::vector<u8> bytes;

    void varint(u32 value) {
        for (; value >= 0x80; value >>= 7) bytes.push_back((u8)(value | 0x80));
        bytes.push_back((u8)value);
    }
    bool number(u32 tag, u32 value) {
        varint(tag);
        varint(value);
        return true;
    }
    // A length is written after its message, whose place assumes two bytes for it.
    template <class Body> bool message(u32 tag, const Body& body) {
        varint(tag);
        bytes.insert(bytes.end(), 2, 0);
        const size_t begin = bytes.size();
        body();
        u32 rest = (u32)(bytes.size() - begin), needed = 1;
        for (u32 more = rest; more >= 0x80; more >>= 7) needed++;
        if (needed > 2) bytes.insert(bytes.begin() + (long)begin, needed - 2, 0);
        else if (needed < 2) bytes.erase(bytes.begin() + (long)begin - 1);
        u8* to = bytes.data() + begin - 2;
        for (; rest >= 0x80; rest >>= 7) *to++ = (u8)(rest | 0x80);
        *to = (u8)rest;
        return true;
    }
    bool value(u32 tag, const FieldFormat& field, const u8* from) {
        u32 size = (field.width + 7) / 8;
        while (size > 1 && !byte(field, from, size - 1)) size--;
        number(tag, size);
        for (u32 i = size; i--;) bytes.push_back(byte(field, from, i));
        return true;
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

// The match fields of an entry, for a Reader or a Writer.
template <class Io, class Bytes> bool matches(Io& io, const TableFormat& format, Bytes* key) {
    for (const FieldFormat& field : format.fields) {
        const auto exact = [&] { return io.value(wire::EXACT_VALUE, field, key); };
        const auto match = [&] { return io.number(wire::FIELD_ID, field.id) && io.message(wire::EXACT, exact); };
        if (!io.message(wire::MATCH, match)) return false;
    }
    return true;
}

// The parameters of an action, for a Reader or a Writer.
template <class Io, class Bytes> bool parameters(Io& io, const ActionFormat& format, Bytes* data) {
    for (const FieldFormat& field : format.parameters) {
        const auto parameter = [&] {
            return io.number(wire::PARAMETER_ID, field.id) && io.value(wire::PARAMETER_VALUE, field, data);
        };
        if (!io.message(wire::PARAMETER, parameter)) return false;
    }
    return true;
}

struct Batch {
    struct Item { u32 begin, length; u8 kind; i32 action; const TableFormat* format; size_t place; };
    const Formats& formats;
    Reader request;
    std::vector<Item> items;
    std::vector<u8> staged;  // keys and data
    std::vector<u8> rest;    // the request without its updates

    Batch(const Formats& f, const u8* data, size_t size) : formats(f), request{data, data + size} {}

    // False: the request is left to Python, which has all rules.
    bool read() {
        if (request.size() >> 31) return false;
        // Small updates may need large keys.
        const size_t most = 2 * request.size() + 4096;
        Reader all = request;
        while (!all.empty()) {
            const u8* const begin = all.at;
            u32 tag;
            if (!all.number(tag) || tag < 8) return false;
            Reader inner = {};
            if ((tag & 7) == 2) {
                if (!all.part(inner)) return false;
            } else if ((tag & 7) != 0 || !skip_number(all)) {
                return false;
            }
            if (tag == wire::UPDATES) {
                Item item = {(u32)(inner.at - request.at), (u32)inner.size(), 0, -1, nullptr, 0};
                if (staged.size() > most || !update(inner, item)) return false;
                items.push_back(item);
            } else {
                rest.insert(rest.end(), begin, all.at);
            }
        }
        return true;
    }

    // Applies updates up to one that fails; returns its place, or `to`.
    u64 apply(u64 from, u64 to) const {
        constexpr u64 AHEAD = 8;
        for (u64 i = from; i < to; i++) {
            if (i + AHEAD < to)
                items[i + AHEAD].format->table->prefetch(staged.data() + items[i + AHEAD].place);
            if (!apply(items[i])) return i;
        }
        return to;
    }

private:
    static bool skip_number(Reader& s) {
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
        if (item.kind == wire::MODIFY) records.set(records.entry(known), item.action, 0, data, records.data_bytes);
        else table.remove(known);
        return true;
    }

    bool update(Reader in, Item& item) {
        u32 kind, ident;
        if (!in.any_number(wire::TYPE, kind) || kind < wire::INSERT || kind > wire::DELETE) return false;
        item.kind = (u8)kind;
        u8* data = nullptr;
        const auto action = [&] {
            if (!in.any_number(wire::ACTION_ID, ident)) return false;
            const ActionFormat* const format = format_with(item.format->actions, &ActionFormat::id, ident);
            if (!format) return false;
            item.action = format->number;
            return parameters(in, *format, data);
        };
        const auto table_entry = [&] {
            if (!in.any_number(wire::TABLE_ID, ident)) return false;
            const TableFormat* const format = item.format = format_with(formats.tables, &TableFormat::id, ident);
            if (!format || !format->writable) return false;
            const Records& records = format->table->records;
            item.place = staged.size();
            staged.resize(item.place + records.key_bytes + records.data_bytes);
            u8* const key = staged.data() + item.place;
            data = key + records.key_bytes;
            if (!matches(in, *format, key)) return false;
            if (in.empty()) return kind == wire::DELETE;
            return in.message(wire::ACTION, [&] { return in.message(wire::TABLE_ACTION, action); });
        };
        const auto entity = [&] { return in.message(wire::TABLE_ENTRY, table_entry); };
        return in.message(wire::ENTITY, entity) && in.empty();
    }
};

struct Answer {
    Writer out;

    void entries(const TableFormat& format, const u8* rows, u64 count) {
        out.bytes.clear();
        for (; count; count--, rows += format.table->records.stride) entry(format, rows);
    }

private:
    void entry(const TableFormat& format, const u8* row) {
        const Records& records = format.table->records;
        const Entry* const entry = (const Entry*)(row + records.key_bytes + records.counts_bytes);
        const ActionFormat* const action = format_with(format.actions, &ActionFormat::number, +entry->action);
        const auto call = [&] {
            return out.number(wire::ACTION_ID, action->id) && parameters(out, *action, entry->data);
        };
        const auto table_entry = [&] {
            out.number(wire::TABLE_ID, format.id);
            matches(out, format, row);
            if (action) out.message(wire::ACTION, [&] { return out.message(wire::TABLE_ACTION, call); });
            if (entry->marks & CONSTANT) out.number(wire::IS_CONST, 1);
        };
        out.message(wire::ENTITIES, [&] { out.message(wire::TABLE_ENTRY, table_entry); });
    }
};
