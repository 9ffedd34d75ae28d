// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Match tables. A key is one number: the fields of the key one behind the other.
#pragma once

#include "wide.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

struct Entry {
    i32 action;
    u32 unused;
    u64 packets, bytes;
    u8 data[];  // the parameters of the action, each in whole bytes
};

// What the controllers' side gives: numbers in whole words, the least significant first.
struct Match {
    const u8* value;
    const u8* mask;
    const u8* low;
    const u8* high;
    i64 rank;  // the priority, or the length of the prefix
};

struct Table {
    size_t entry_bytes = 0;  // of the parameters, at most
    Entry* fallback = nullptr;

    virtual ~Table() { free(fallback); }
    virtual Entry* find(const Match&) = 0;
    virtual void insert(const Match&, Entry*) = 0;
    virtual void remove(const Match&) = 0;
    virtual void clear() = 0;

    Entry* make(i32 action, const u8* data, size_t size) const {
        Entry* entry = (Entry*)calloc(1, sizeof(Entry) + entry_bytes + 8);
        set(entry, action, data, size);
        return entry;
    }
    void set(Entry* entry, i32 action, const u8* data, size_t size) const {
        entry->action = action;
        if (size) memcpy(entry->data, data, size < entry_bytes ? size : entry_bytes);
    }
    void set_fallback(i32 action, const u8* data, size_t size) {
        if (!fallback) fallback = make(action, data, size);
        else set(fallback, action, data, size);
    }
    void put(const Match& match, i32 action, const u8* data, size_t size) {
        if (Entry* known = find(match)) {
            set(known, action, data, size);
            changed();
        } else {
            insert(match, make(action, data, size));
        }
    }
    virtual void changed() {}
};

template <int K> INLINE T<K> read_key(const u8* p) { return load_here<8 * K>(p); }

template <class X> INLINE u64 mixed(const X& key) {
    u64 h = 0x9E3779B97F4A7C15ull;
    for (int i = 0; i < words_of<X>; i++) {
        const u128 product = (u128)(h ^ word(key, i)) * 0xD6E8FEB86659FD93ull;
        h = (u64)product ^ (u64)(product >> 64);
    }
    return h;
}

// Open addressing; a gap is filled by moving back what comes behind it.
template <int K> struct ExactTable : Table {
    struct Slot { T<K> key; Entry* entry; };
    std::vector<Slot> slots;
    size_t used = 0;

    ExactTable() : slots(16) {}
    ~ExactTable() override { drop(); }

    INLINE size_t home(const ExactTable& t, const T<K>& key) { return mixed(key) & (t.slots.size() - 1); }
    Entry* lookup(const T<K>& key) const {
        const size_t mask = slots.size() - 1;
        for (size_t i = home(*this, key);; i = (i + 1) & mask) {
            const Slot& slot = slots[i];
            if (!slot.entry || slot.key == key) return slot.entry;
        }
    }
    void place(const T<K>& key, Entry* entry) {
        const size_t mask = slots.size() - 1;
        size_t i = home(*this, key);
        while (slots[i].entry) i = (i + 1) & mask;
        slots[i] = {key, entry};
    }
    void add(const T<K>& key, Entry* entry) {
        if (++used * 4 > slots.size() * 3) {
            std::vector<Slot> old(slots.size() * 2);
            old.swap(slots);
            for (const Slot& slot : old)
                if (slot.entry) place(slot.key, slot.entry);
        }
        place(key, entry);
    }
    void erase(const T<K>& key) {
        const size_t mask = slots.size() - 1;
        size_t i = home(*this, key);
        while (slots[i].entry && !(slots[i].key == key)) i = (i + 1) & mask;
        if (!slots[i].entry) return;
        free(slots[i].entry);
        used--;
        for (size_t j = (i + 1) & mask; slots[j].entry; j = (j + 1) & mask) {
            if (((j - home(*this, slots[j].key)) & mask) >= ((j - i) & mask)) {
                slots[i] = slots[j];
                i = j;
            }
        }
        slots[i].entry = nullptr;
    }
    void drop() {
        for (Slot& slot : slots) free(slot.entry);
    }
    Entry* find(const Match& m) override { return lookup(read_key<K>(m.value)); }
    void insert(const Match& m, Entry* entry) override { add(read_key<K>(m.value), entry); }
    void remove(const Match& m) override { erase(read_key<K>(m.value)); }
    void clear() override {
        drop();
        std::vector<Slot>(16).swap(slots);
        used = 0;
    }
};

// One table per length of the prefix, the longest first.
template <int K> struct PrefixTable : Table {
    struct Length { i64 length; T<K> mask; ExactTable<K> table; };
    std::vector<Length*> lengths;

    ~PrefixTable() override { clear(); }
    Entry* lookup(const T<K>& key) const {
        for (const Length* each : lengths)
            if (Entry* entry = each->table.lookup(key & each->mask)) return entry;
        return nullptr;
    }
    size_t at(i64 length) const {
        size_t i = 0;
        while (i < lengths.size() && lengths[i]->length > length) i++;
        return i;
    }
    Length* of(const Match& m) {
        const size_t i = at(m.rank);
        return i < lengths.size() && lengths[i]->length == m.rank ? lengths[i] : nullptr;
    }
    Entry* find(const Match& m) override {
        Length* known = of(m);
        return known ? known->table.lookup(read_key<K>(m.value) & known->mask) : nullptr;
    }
    void insert(const Match& m, Entry* entry) override {
        Length* known = of(m);
        if (!known) {
            known = new Length{m.rank, read_key<K>(m.mask), {}};
            lengths.insert(lengths.begin() + (long)at(m.rank), known);
        }
        known->table.add(read_key<K>(m.value) & known->mask, entry);
    }
    void remove(const Match& m) override {
        Length* known = of(m);
        if (!known) return;
        known->table.erase(read_key<K>(m.value) & known->mask);
        if (known->table.used == 0) {
            lengths.erase(lengths.begin() + (long)at(m.rank));
            delete known;
        }
    }
    void clear() override {
        for (Length* each : lengths) delete each;
        lengths.clear();
    }
};

// Ternary fields and ranges by priority, the largest first, and what came first among equals.
// In::side says whether the fields that are ranges lie between two keys.
template <int K, class In> struct PriorityTable : Table {
    struct Ranked { i64 rank; T<K> value, mask, low, high; Entry* entry; };
    struct Recent { T<K> key; Entry* entry; u64 generation; };
    std::vector<Ranked> ranked;
    std::vector<Recent> recent;
    u64 generation = 1;

    PriorityTable() : recent(1024) {}
    ~PriorityTable() override { drop(); }
    Entry* lookup(const T<K>& key) {
        Recent& known = recent[mixed(key) & 1023];
        if (known.generation == generation && known.key == key) return known.entry;
        Entry* found = nullptr;
        for (const Ranked& each : ranked) {
            if ((key & each.mask) == each.value && In::side(key, each.low, each.high)) {
                found = each.entry;
                break;
            }
        }
        known = {key, found, generation};
        return found;
    }
    Ranked made(const Match& m, Entry* entry) const {
        return {m.rank, read_key<K>(m.value) & read_key<K>(m.mask), read_key<K>(m.mask),
                read_key<K>(m.low), read_key<K>(m.high), entry};
    }
    size_t at(const Match& m) const {
        const Ranked r = made(m, nullptr);
        size_t i = 0;
        for (; i < ranked.size(); i++) {
            const Ranked& o = ranked[i];
            if (o.rank == r.rank && o.value == r.value && o.mask == r.mask && o.low == r.low &&
                o.high == r.high)
                break;
        }
        return i;
    }
    Entry* find(const Match& m) override {
        const size_t i = at(m);
        return i < ranked.size() ? ranked[i].entry : nullptr;
    }
    void insert(const Match& m, Entry* entry) override {
        size_t i = 0;
        while (i < ranked.size() && ranked[i].rank >= m.rank) i++;
        ranked.insert(ranked.begin() + (long)i, made(m, entry));
        changed();
    }
    void remove(const Match& m) override {
        const size_t i = at(m);
        if (i == ranked.size()) return;
        free(ranked[i].entry);
        ranked.erase(ranked.begin() + (long)i);
        changed();
    }
    void drop() {
        for (Ranked& each : ranked) free(each.entry);
    }
    void clear() override {
        drop();
        ranked.clear();
        changed();
    }
    void changed() override { generation++; }
};
