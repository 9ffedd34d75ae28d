// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// What a program needs of the switch that it runs in.
#pragma once

#include "hashes.h"
#include "tables.h"

#include <string>

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
