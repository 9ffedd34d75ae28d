// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// What a table's entries are kept in: their records one behind the other, and an index of them.
#pragma once

#include "wide.h"

#include <cstdlib>
#include <vector>

constexpr u32 NOWHERE = ~0u;

enum Mark { CONSTANT = 1, NOTED = 2 };  // NOTED: Python knows more of this entry

struct EntryCounts { u64 packets, bytes; };

struct Entry {
    i32 action : 24;
    u32 marks : 8;
    u8 data[];  // the parameters of the action, each in whole bytes
};

// The counters of an entry, which are in front of it.
struct CountsOf {
    EntryCounts* counts = nullptr;
    INLINE EntryCounts* before(Entry* entry) { return (EntryCounts*)((u8*)entry - sizeof(EntryCounts)); }
    void operator=(Entry* entry) { counts = before(entry); }
    EntryCounts* operator->() const { return counts; }
};

// Records of one size, of each entry its key, its counters if it has any, and itself. A record
// that goes leaves its place to the last one. Large memory grows by moving pages, not bytes:
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
    void set(u32 number, i32 action, u32 marks, const u8* data, size_t size) const {
        set(entry(number), action, marks, data, size);
    }
    void set(Entry* entry, i32 action, u32 marks, const u8* data, size_t size) const {
        entry->action = action;
        entry->marks = marks;
        memset(entry->data, 0, data_bytes);
        if (size) memcpy(entry->data, data, size < data_bytes ? size : data_bytes);
    }
    // Takes the last record away, after its bytes have gone to another place.
    void pop(u32 to) {
        if (to != --used) memcpy(key(to), key(used), stride);
        if (room > 64 && used < room / 4) resize(room / 2);
    }
    void clear() {
        free(memory);
        memory = nullptr;
        used = room = 0;
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

// Finds the numbers of records by the hashes of their keys. Open addressing; a gap is filled by
// moving back what comes behind it. A slot has the hash, so that no record is touched in vain.
struct Index {
    struct Slot { u32 hash, number; };
    std::vector<Slot> slots;
    size_t used = 0;

    Index() { clear(); }
    template <class Same> INLINE u32 find_in(const Index& index, u64 hash, const Same& same) {
        const size_t mask = index.slots.size() - 1;
        for (size_t i = hash & mask;; i = (i + 1) & mask) {
            const Slot& slot = index.slots[i];
            if (slot.number == NOWHERE || (slot.hash == (u32)hash && same(slot.number))) return slot.number;
        }
    }
    void prefetch(u64 hash) const { __builtin_prefetch(&slots[hash & (slots.size() - 1)]); }
    void place(Slot slot) {
        const size_t mask = slots.size() - 1;
        size_t i = slot.hash & mask;
        while (slots[i].number != NOWHERE) i = (i + 1) & mask;
        slots[i] = slot;
    }
    void add(u64 hash, u32 number) {
        if (++used * 4 > slots.size() * 3) {
            std::vector<Slot> old(slots.size() * 2, Slot{0, NOWHERE});
            old.swap(slots);
            for (const Slot& slot : old)
                if (slot.number != NOWHERE) place(slot);
        }
        place({(u32)hash, number});
    }
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
    void clear() {
        std::vector<Slot>(16, Slot{0, NOWHERE}).swap(slots);
        used = 0;
    }
};
