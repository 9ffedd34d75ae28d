// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// What a program needs of the switch that it runs in.
#pragma once

#include "hashes.h"
#include "tables.h"

#include <new>
#include <string>
#include <sys/mman.h>

// The cells of all registers and counters, in pages that the kernel gives, all zero, when they are
// first touched: a program has megabytes of them, and uses few.
struct Cells {
    static constexpr size_t LINE = 64;
    const size_t size;
    u8* const memory;
    u8* next;
    static constexpr size_t rounded(size_t bytes) { return (bytes + LINE - 1) / LINE * LINE; }
    static u8* pages(size_t size) {
        void* const memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) throw std::bad_alloc();
        return (u8*)memory;
    }
    explicit Cells(size_t bytes) : size(bytes + LINE), memory(pages(size)), next(memory) {}
    Cells(const Cells&) = delete;
    ~Cells() { munmap(memory, size); }
    u8* take(size_t bytes) {
        u8* const taken = next;
        next += rounded(bytes);
        return taken;
    }
};

// A number for the log: whether it has a sign, its words, and these.
struct Told {
    std::string bytes;
    template <bool S, class X> INLINE void add(Told& told, const X& x) {
        const u8 head[2] = {(u8)S, (u8)words_of<X>};
        told.bytes.append((const char*)head, 2);
        told.bytes.append((const char*)&x, sizeof x);
    }
};

struct Host {
    u8* scratch = nullptr;  // where bytes are put together that are hashed
    virtual ~Host() {}
    virtual void log(u32 message, const Told& values) = 0;
};

// The results of ingress and egress besides their variables.
struct Fate {
    u64 spec = 0, group = 0;
    i64 session = -1, clone_list = 0, again = 0;  // again: the list of a resubmission or recirculation
    i64 pos = 0, length = 0, cut = 0;
    i64 out = -1;  // the bytes that leave; -1: the packet was dropped
};

constexpr u64 DROP_PORT = 511;
constexpr i64 NEVER_TRUNCATED = 1ll << 31;
