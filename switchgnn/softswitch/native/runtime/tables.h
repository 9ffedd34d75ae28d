// Match tables and the records of their entries. The fields of a key are one number, concatenated.
// An entry's key has such numbers in whole words, least significant word first; see each table.
#pragma once

#include "wide.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

constexpr u32 NOWHERE = ~0u;

enum Mark { CONSTANT = 1, NOTED = 2 };  // NOTED: Python has metadata of this entry

struct EntryCounts { u64 packets, bytes; };

struct Entry {
    i32 action : 24;
    u32 marks : 8;
    u8 data[];  // parameters of the action, each in whole bytes
};

// The counters of an entry, stored before it.
struct CountsOf {
    EntryCounts* counts = nullptr;
    INLINE EntryCounts* before(Entry* entry) { return (EntryCounts*)((u8*)entry - sizeof(EntryCounts)); }
    void operator=(Entry* entry) { counts = before(entry); }
    EntryCounts* operator->() const { return counts; }
};

// Records of one size: key, optional counters and entry. The last record replaces a removed one.
// realloc grows large memory by moving pages, not bytes:
// https://man7.org/linux/man-pages/man2/mremap.2.html
struct Records {
    size_t key_bytes = 0, counts_bytes = 0, data_bytes = 0, stride = 0;
    u8* memory = nullptr;
    u32 used = 0, room = 0;

    ~Records() { free(memory); }
    void layout(size_t key, bool counted, size_t data) {
        key_bytes = key;
        counts_bytes = counted ? sizeof(EntryCounts) : 0;
        data_bytes = data;
        stride = (key + counts_bytes + sizeof(Entry) + data + 7) / 8 * 8;
    }
    u8* key(u32 number) const { return memory + number * stride; }
    Entry* entry(u32 number) const { return (Entry*)(key(number) + key_bytes + counts_bytes); }
    EntryCounts* counts(u32 number) const { return CountsOf::before(entry(number)); }

    void resize(u32 wanted) {
        u8* const moved = (u8*)realloc(memory, wanted * stride);
        if (!moved) abort();
        memory = moved;
        room = wanted;
    }
    u32 add(const u8* new_key) {
        if (used == room) resize(room + room / 2 + 4);
        memset(key(used), 0, stride);
        memcpy(key(used), new_key, key_bytes);
        return used++;
    }
    void set(Entry* entry, i32 action, u32 marks, const u8* data, size_t size) const {
        entry->action = action;
        entry->marks = marks;
        memset(entry->data, 0, data_bytes);
        if (size) memcpy(entry->data, data, size < data_bytes ? size : data_bytes);
    }
    // Moves the last record to another place.
    void pop(u32 to) {
        if (to != --used) memcpy(key(to), key(used), stride);
        if (room > 64 && used < room / 4) resize(room / 2);
    }
};

template <class X> INLINE u64 mixed(const X& key) {
    u64 h = 0x9E3779B97F4A7C15ull;
    for (int i = 0; i < words_of<X>; i++) {
        const u128 product = (u128)(h ^ word(key, i)) * 0xD6E8FEB86659FD93ull;
        h = (u64)product ^ (u64)(product >> 64);
    }
    return h;
}

// Maps hashes of keys to record numbers by open addressing; removals shift later slots back. Slots
// store the hash, so that few records are compared.
struct Index {
    struct Slot { u32 hash, number; };
    std::vector<Slot> slots = std::vector<Slot>(16, Slot{0, NOWHERE});
    size_t used = 0;

    template <class Same> INLINE u32 find_in(const Index& index, u64 hash, const Same& same) {
        const size_t mask = index.slots.size() - 1;
        for (size_t i = hash & mask;; i = (i + 1) & mask) {
            const Slot& slot = index.slots[i];
            if (slot.number == NOWHERE || (slot.hash == (u32)hash && same(slot.number))) return slot.number;
        }
    }
    void prefetch(u64 hash) const { __builtin_prefetch(&slots[hash & (slots.size() - 1)]); }
    void add(u64 hash, u32 number) {
        if (++used * 4 > slots.size() * 3) {
            std::vector<Slot> old(slots.size() * 2, Slot{0, NOWHERE});
            old.swap(slots);
            for (const Slot& slot : old)
                if (slot.number != NOWHERE) slots[at(slot.hash, NOWHERE)] = slot;
        }
        slots[at(hash, NOWHERE)] = {(u32)hash, number};
    }
    // Where a number is; NOWHERE: where one may be placed.
    size_t at(u64 hash, u32 number) const {
        const size_t mask = slots.size() - 1;
        size_t i = hash & mask;
        while (slots[i].number != number) i = (i + 1) & mask;
        return i;
    }
    void remove(u64 hash, u32 number) {
        const size_t mask = slots.size() - 1;
        size_t i = at(hash, number);
        used--;
        for (size_t j = (i + 1) & mask; slots[j].number != NOWHERE; j = (j + 1) & mask) {
            if (((j - slots[j].hash) & mask) >= ((j - i) & mask)) {
                slots[i] = slots[j];
                i = j;
            }
        }
        slots[i].number = NOWHERE;
    }
    void rename(u64 hash, u32 from, u32 to) { slots[at(hash, from)].number = to; }
};

struct Table {
    Records records;
    Index index;
    Entry* fallback = nullptr;

    virtual ~Table() { free(fallback); }
    virtual size_t key_bytes() const = 0;
    virtual u64 hash(const u8* key) const = 0;
    // Called after a record is added, before one is removed, before one is renumbered.
    virtual void added(u32) {}
    virtual void removed(u32) {}
    virtual void renamed(u32, u32) {}

    void layout(size_t entry_bytes, bool counted) { records.layout(key_bytes(), counted, entry_bytes); }
    void set_fallback(i32 action, const u8* data, size_t size) {
        if (!fallback) fallback = (Entry*)calloc(1, sizeof(Entry) + records.data_bytes + 8);
        records.set(fallback, action, 0, data, size);
    }
    u32 find(const u8* key) const {
        const size_t size = records.key_bytes;
        return Index::find_in(index, hash(key), [&](u32 n) { return memcmp(records.key(n), key, size) == 0; });
    }
    void prefetch(const u8* key) const { index.prefetch(hash(key)); }
    void insert(const u8* key, i32 action, u32 marks, const u8* data, size_t size) {
        const u32 number = records.add(key);
        records.set(records.entry(number), action, marks, data, size);
        index.add(hash(key), number);
        added(number);
    }
    void put(const u8* key, i32 action, u32 marks, const u8* data, size_t size) {
        const u32 known = find(key);
        if (known != NOWHERE) records.set(records.entry(known), action, marks, data, size);
        else insert(key, action, marks, data, size);
    }
    void remove(u32 number) {
        const u32 last = records.used - 1;
        removed(number);
        index.remove(hash(records.key(number)), number);
        if (number != last) {
            renamed(last, number);
            index.rename(hash(records.key(last)), last, number);
        }
        records.pop(number);
    }
};

template <int K> INLINE T<K> read_key(const u8* p) { return load_here<8 * K>(p); }

// Key: the value. Entries that a packet needs in turn are often written in turn: the one behind the
// last one is tried first, and fetched before it is asked for; then the last one, which a table of few
// entries often returns again.
template <int K> struct ExactTable : Table {
    u32 next = 0;

    size_t key_bytes() const override { return 8 * K; }
    u64 hash(const u8* key) const override { return mixed(read_key<K>(key)); }
    INLINE T<K> key_of(const ExactTable& t, u32 number) { return read_key<K>(t.records.key(number)); }
    u32 number(const T<K>& key) const {
        return Index::find_in(index, mixed(key), [&](u32 n) { return key_of(*this, n) == key; });
    }
    Entry* lookup(const T<K>& key) {
        u32 found = next;
        if (found >= records.used || !(key_of(*this, found) == key)) {
            if (!records.used) return nullptr;
            found = next ? next - 1 : 0;
            if (found >= records.used || !(key_of(*this, found) == key)) found = number(key);
        }
        if (found == NOWHERE) return nullptr;
        next = found + 1;
        __builtin_prefetch(records.key(next));
        return records.entry(found);
    }
};

// Key: value, mask, low and high ends of ranges, and rank: the priority, or the bits of a prefix. The
// highest rank wins, then the oldest entry. In::side compares the range fields.
template <int K, class In> struct PriorityTable : Table {
    struct Key { T<K> value, mask, low, high; i64 rank; };
    struct Ranked { Key key; u32 number; };
    std::vector<Ranked> ranked;

    size_t key_bytes() const override { return 32 * K + 8; }
    Entry* lookup(const T<K>& key) const {
        for (const Ranked& each : ranked)
            if ((key & each.key.mask) == each.key.value && In::side(key, each.key.low, each.key.high))
                return records.entry(each.number);
        return nullptr;
    }
    INLINE Key read(const u8* p) {
        return {read_key<K>(p), read_key<K>(p + 8 * K), read_key<K>(p + 16 * K), read_key<K>(p + 24 * K),
                (i64)read_key<1>(p + 32 * K)};
    }
    u64 hash(const u8* key) const override { return mixed(load_here<32 * K + 8>(key)); }
    void added(u32 n) override {
        const Key key = read(records.key(n));
        const auto lower = [&](const Ranked& each) { return each.key.rank < key.rank; };
        ranked.insert(std::find_if(ranked.begin(), ranked.end(), lower), {key, n});
    }
    auto at(u32 n) {
        return std::find_if(ranked.begin(), ranked.end(), [n](const Ranked& each) { return each.number == n; });
    }
    void removed(u32 n) override { ranked.erase(at(n)); }
    void renamed(u32 from, u32 to) override { at(from)->number = to; }
};
