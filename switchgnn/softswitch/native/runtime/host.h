// The switch as a program sees it: hashes, cells of registers and counters.
#pragma once

#include "crc32.h"
#include "tables.h"
#include "wide.h"

#include <new>
#include <random>

struct HashTable {
    u16 crc16[256];
    HashTable() {
        for (u32 byte = 0; byte < 256; byte++) {
            u32 small = byte;
            for (int i = 0; i < 8; i++) small = small >> 1 ^ (small & 1 ? 0xA001u : 0);
            crc16[byte] = (u16)small;
        }
    }
};
static const HashTable hash_table;

static u64 hash_crc32(const u8* p, size_t n) { return crc32(0, p, n); }

static u64 hash_crc16(const u8* p, size_t n) {
    u32 value = 0;
    for (; n; n--, p++) value = value >> 8 ^ hash_table.crc16[(value ^ *p) & 255];
    return value;
}

static u64 hash_csum16(const u8* p, size_t n) {
    u64 sum = 0;
    for (size_t i = 0; i + 1 < n; i += 2) sum += (u64)p[i] << 8 | p[i + 1];
    if (n & 1) sum += (u64)p[n - 1] << 8;
    while (sum >> 16) sum = (sum & 0xFFFF) + (sum >> 16);
    return 0xFFFF - sum;
}
static u64 hash_cksum16(const u8* p, size_t n) { return hash_csum16(p, n); }

static u64 hash_xor16(const u8* p, size_t n) {
    u64 value = 0;
    for (size_t i = 0; i + 1 < n; i += 2) value ^= (u64)p[i] << 8 | p[i + 1];
    if (n & 1) value ^= (u64)p[n - 1] << 8;
    return value;
}

static u64 hash_identity(const u8* p, size_t n) {
    u64 value = 0;
    for (size_t i = 0; i < n && i < 8; i++) value = value << 8 | p[i];
    return value;
}

// Concatenated bits, the most significant first.
struct Bits {
    u8* p;
    u8* begin;
    u64 pending = 0;  // fewer than 8 bits
    int count = 0;

    explicit Bits(u8* buffer) : p(buffer), begin(buffer) {}

    void clear() { p = begin, pending = 0, count = 0; }

    // B bits of x, at most 56.
    template <int B> INLINE void small(Bits& b, u64 x) {
        b.pending = b.pending << B | x;
        b.count += B;
        while (b.count >= 8) {
            b.count -= 8;
            *b.p++ = (u8)(b.pending >> b.count);
        }
    }
    template <int B, class X> INLINE void append(Bits& b, const X& x) {
        if constexpr (B == 0) return;
        if (b.count == 0 && B % 8 == 0) {
            if constexpr (B % 8 == 0 && B > 0) store_wire<B / 8>(b.p, x);
            b.p += B / 8;
            return;
        }
        constexpr int top = B % 32;
        if constexpr (top != 0) small<top>(b, word(x, B / 64) >> (B % 64 - top) & ((1ull << top) - 1));
        for (int i = B / 32 - 1; i >= 0; i--) small<32>(b, word(x, i / 2) >> (i % 2 * 32) & 0xFFFFFFFF);
    }
    void bytes(const u8* from, size_t n) {
        memcpy(p, from, n);
        p += n;
    }
    // Fills the last byte with zero bits.
    void finish() {
        if (count) *p++ = (u8)(pending << (8 - count));
        pending = 0, count = 0;
    }
    size_t size() const { return (size_t)(p - begin); }
};

// A random number from 0 to most, both included.
static u64 random_up_to(u64 most) {
    static thread_local std::mt19937_64 numbers{std::random_device{}()};
    return std::uniform_int_distribution<u64>(0, most)(numbers);
}

// The cells of all registers and counters, in pages that the kernel allocates on first use: a
// program declares megabytes and uses few.
struct Cells {
    static constexpr size_t LINE = 64;
    u8* const memory;
    u8* next;
    static constexpr size_t rounded(size_t bytes) { return (bytes + LINE - 1) / LINE * LINE; }
    explicit Cells(size_t bytes) : memory((u8*)calloc(bytes + LINE, 1)), next(memory) {
        if (!memory) throw std::bad_alloc();
        next += -(uintptr_t)memory % LINE;
    }
    Cells(const Cells&) = delete;
    ~Cells() { free(memory); }
    u8* take(size_t bytes) {
        u8* const taken = next;
        next += rounded(bytes);
        return taken;
    }
};

struct Host {
    u8* scratch = nullptr;  // for the input of hashes
};

// The results of ingress and egress, except their variables.
struct Fate {
    u64 spec = 0, group = 0, priority = 0;
    i64 session = -1, clone_list = 0, again = 0;  // again: the list of a resubmission or recirculation
    i64 pos = 0, length = 0, cut = 0;
    i64 out = -1;  // the bytes that leave; -1: the packet was dropped
    bool stays = false;  // it recirculates as it came, and no bytes were written
};

constexpr u64 DROP_PORT = 511;
constexpr i64 NEVER_TRUNCATED = 1ll << 31;
