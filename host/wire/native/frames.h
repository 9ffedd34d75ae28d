// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Reads and checks frames, as unpack_header of wire/header.py does. The numbers of the header are
// defined from that file before this one is compiled (library.py).
#pragma once

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t i64;

static inline u32 load16(const u8* p) { return (u32)p[0] << 8 | p[1]; }
static inline u32 load32(const u8* p) {
    u32 x;
    memcpy(&x, p, 4);
    return be32toh(x);
}
static inline void store32(u8* p, u32 x) {
    x = htobe32(x);
    memcpy(p, &x, 4);
}

// The CRC-32 of zlib, eight bytes at a time (Kounavis and Berry, 2008).
struct CrcTable {
    u32 of[8][256];
    CrcTable() {
        for (u32 i = 0; i < 256; i++) {
            u32 c = i;
            for (int bit = 0; bit < 8; bit++) c = c >> 1 ^ (c & 1 ? 0xEDB88320u : 0);
            of[0][i] = c;
        }
        for (u32 i = 0; i < 256; i++)
            for (int k = 1; k < 8; k++) of[k][i] = of[k - 1][i] >> 8 ^ of[0][of[k - 1][i] & 255];
    }
};
static const CrcTable crc_table;

static inline u32 crc32(u32 before, const u8* p, size_t size) {
    const auto& t = crc_table.of;
    u32 c = ~before;
    for (; size >= 8; p += 8, size -= 8) {
        u32 low, high;
        memcpy(&low, p, 4);
        memcpy(&high, p + 4, 4);
        low ^= c;
        c = t[7][low & 255] ^ t[6][low >> 8 & 255] ^ t[5][low >> 16 & 255] ^ t[4][low >> 24] ^
            t[3][high & 255] ^ t[2][high >> 8 & 255] ^ t[1][high >> 16 & 255] ^ t[0][high >> 24];
    }
    while (size--) c = c >> 8 ^ t[0][(c ^ *p++) & 255];
    return ~c;
}

static inline u32 checksum_of(const u8* frame, size_t body_bytes) {
    return crc32(crc32(0, frame + HEADER_AT, CHECKED_BYTES), frame + BODY_AT, body_bytes);
}

struct Fields {
    u32 source, destination, block, count, kind, fragment, group, round;
    bool ack, fetch, ecn, resend, echo;
};

// Frames with this body only: others are left to Python.
static inline bool unpack(const u8* frame, size_t size, u8 protocol, u32 kind, size_t body_bytes, Fields& f) {
    if (size < BODY_AT + body_bytes || frame[12] != 8 || frame[13] != 0 || frame[14] != 0x45) return false;
    if (frame[23] != protocol || frame[20] & 0x3F || frame[21]) return false;
    const u8* h = frame + HEADER_AT;
    if ((h[12] & 15) != kind || h[13] >> 4 != VERSION) return false;
    if (checksum_of(frame, body_bytes) != load32(frame + CHECKSUM_AT)) return false;
    f.source = load32(h);
    f.destination = load32(h + 4);
    f.block = load16(h + 8);
    f.count = load16(h + 10);
    f.kind = kind;
    f.ack = h[12] & 0x80, f.fetch = h[12] & 0x40, f.ecn = h[12] & 0x20, f.resend = h[12] & 0x10;
    f.echo = h[13] & 1;
    f.fragment = load16(h + 14);
    f.group = load16(h + 16);
    f.round = load32(h + 18);
    return true;
}

// Whether a queue on the way was long (RFC 3168).
static inline bool ce_marked(const u8* frame) { return (frame[15] & 3) == 3; }

// Frames that have arrived together.
struct Arrived {
    const u8* room;
    u64 room_bytes;
    const u32* begins;
    const u32* sizes;
    const u8* frame(u32 i) const { return room + begins[i]; }
    size_t size(u32 i) const {
        const u64 left = room_bytes - begins[i];
        return sizes[i] < left ? sizes[i] : left;
    }
};
