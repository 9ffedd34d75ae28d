// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Match tables. The fields of a key are one number, one behind the other. What an entry matches is
// written as such numbers in whole words, the least significant first: see `key` of each table.
#pragma once

#include "records.h"

struct Table {
    Records records;
    Entry* fallback = nullptr;

    virtual ~Table() { free(fallback); }
    virtual u32 find(const u8* key) const = 0;
    virtual void prefetch(const u8*) const {}
    virtual size_t key_bytes() const = 0;
    // A record has come, is about to go, is about to have another number.
    virtual void added(u32 number) = 0;
    virtual void removed(u32 number) = 0;
    virtual void renamed(u32 from, u32 to) = 0;
    virtual void cleared() = 0;

    void layout(size_t entry_bytes, bool counted) { records.layout(key_bytes(), counted, entry_bytes); }
    void set_fallback(i32 action, const u8* data, size_t size) {
        if (!fallback) fallback = (Entry*)calloc(1, sizeof(Entry) + records.data_bytes + 8);
        records.set(fallback, action, 0, data, size);
    }
    u32 insert(const u8* key, i32 action, u32 marks, const u8* data, size_t size) {
        const u32 number = records.add(key);
        records.set(number, action, marks, data, size);
        added(number);
        return number;
    }
    void put(const u8* key, i32 action, u32 marks, const u8* data, size_t size) {
        const u32 known = find(key);
        if (known != NOWHERE) records.set(known, action, marks, data, size);
        else insert(key, action, marks, data, size);
    }
    void remove(u32 number) {
        removed(number);
        if (number != records.used - 1) renamed(records.used - 1, number);
        records.pop(number);
    }
    void clear() {
        cleared();
        records.clear();
    }
};

template <int K> INLINE T<K> read_key(const u8* p) { return load_here<8 * K>(p); }

// Key: the value.
template <int K> struct ExactTable : Table {
    Index index;

    size_t key_bytes() const override { return 8 * K; }
    INLINE T<K> key_of(const ExactTable& t, u32 number) { return read_key<K>(t.records.key(number)); }
    u32 number(const T<K>& key) const {
        return Index::find_in(index, mixed(key), [&](u32 n) { return key_of(*this, n) == key; });
    }
    Entry* lookup(const T<K>& key) const {
        const u32 found = number(key);
        return found == NOWHERE ? nullptr : records.entry(found);
    }
    u32 find(const u8* key) const override { return number(read_key<K>(key)); }
    void prefetch(const u8* key) const override { index.prefetch(mixed(read_key<K>(key))); }
    void added(u32 n) override { index.add(mixed(key_of(*this, n)), n); }
    void removed(u32 n) override { index.remove(mixed(key_of(*this, n)), n); }
    void renamed(u32 from, u32 to) override { index.rename(mixed(key_of(*this, from)), from, to); }
    void cleared() override { index.clear(); }
};

// Key: the value, its mask, and the length of the prefix. One index per length, the longest first.
template <int K> struct PrefixTable : Table {
    struct Length { i64 length; T<K> mask; Index index; };
    std::vector<Length*> lengths;

    ~PrefixTable() override { cleared(); }
    size_t key_bytes() const override { return 16 * K + 8; }
    INLINE T<K> value(const u8* key) { return read_key<K>(key); }
    INLINE i64 rank(const u8* key) { return (i64)read_key<1>(key + 16 * K); }
    u32 number(const Length& length, const T<K>& key) const {
        return Index::find_in(length.index, mixed(key), [&](u32 n) { return value(records.key(n)) == key; });
    }
    Entry* lookup(const T<K>& key) const {
        for (const Length* each : lengths) {
            const u32 found = number(*each, key & each->mask);
            if (found != NOWHERE) return records.entry(found);
        }
        return nullptr;
    }
    size_t at(i64 length) const {
        size_t i = 0;
        while (i < lengths.size() && lengths[i]->length > length) i++;
        return i;
    }
    Length* of(const u8* key) const {
        const size_t i = at(rank(key));
        return i < lengths.size() && lengths[i]->length == rank(key) ? lengths[i] : nullptr;
    }
    u32 find(const u8* key) const override {
        const Length* known = of(key);
        return known ? number(*known, value(key)) : NOWHERE;
    }
    void added(u32 n) override {
        const u8* const key = records.key(n);
        Length* known = of(key);
        if (!known) {
            known = new Length{rank(key), read_key<K>(key + 8 * K), {}};
            lengths.insert(lengths.begin() + (long)at(rank(key)), known);
        }
        known->index.add(mixed(value(key)), n);
    }
    void removed(u32 n) override {
        const u8* const key = records.key(n);
        Length* const known = of(key);
        known->index.remove(mixed(value(key)), n);
        if (known->index.used == 0) {
            lengths.erase(lengths.begin() + (long)at(known->length));
            delete known;
        }
    }
    void renamed(u32 from, u32 to) override {
        const u8* const key = records.key(from);
        of(key)->index.rename(mixed(value(key)), from, to);
    }
    void cleared() override {
        for (Length* each : lengths) delete each;
        lengths.clear();
    }
};

// Key: value, mask, low and high ends of ranges, and the priority. Ternary fields and ranges by
// priority, the largest first, and what came first among equals. In::side says whether the fields
// that are ranges lie between two keys.
template <int K, class In> struct PriorityTable : Table {
    struct Key { T<K> value, mask, low, high; i64 rank; };
    struct Ranked { Key key; u32 number; };
    struct Recent { T<K> key; u32 number; u64 generation; };
    std::vector<Ranked> ranked;
    std::vector<Recent> recent;
    Index index;
    u64 generation = 1;

    PriorityTable() : recent(1024) {}
    size_t key_bytes() const override { return 32 * K + 8; }
    Entry* lookup(const T<K>& key) {
        Recent& known = recent[mixed(key) & 1023];
        if (known.generation != generation || !(known.key == key)) known = {key, search(key), generation};
        return known.number == NOWHERE ? nullptr : records.entry(known.number);
    }
    u32 search(const T<K>& key) const {
        for (const Ranked& each : ranked)
            if ((key & each.key.mask) == each.key.value && In::side(key, each.key.low, each.key.high))
                return each.number;
        return NOWHERE;
    }
    INLINE Key read(const u8* p) {
        return {read_key<K>(p), read_key<K>(p + 8 * K), read_key<K>(p + 16 * K), read_key<K>(p + 24 * K),
                (i64)read_key<1>(p + 32 * K)};
    }
    INLINE u64 hash(const u8* key) { return mixed(load_here<32 * K + 8>(key)); }
    u32 find(const u8* key) const override {
        return Index::find_in(index, hash(key), [&](u32 n) {
            return memcmp(records.key(n), key, 32 * K + 8) == 0;
        });
    }
    void added(u32 n) override {
        const Key key = read(records.key(n));
        index.add(hash(records.key(n)), n);
        size_t i = 0;
        while (i < ranked.size() && ranked[i].key.rank >= key.rank) i++;
        ranked.insert(ranked.begin() + (long)i, {key, n});
        generation++;
    }
    size_t at(u32 n) const {
        size_t i = 0;
        while (ranked[i].number != n) i++;
        return i;
    }
    void removed(u32 n) override {
        index.remove(hash(records.key(n)), n);
        ranked.erase(ranked.begin() + (long)at(n));
        generation++;
    }
    void renamed(u32 from, u32 to) override {
        index.rename(hash(records.key(from)), from, to);
        ranked[at(from)].number = to;
    }
    void cleared() override {
        index.clear();
        ranked.clear();
        generation++;
    }
};
