// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Reads and checks frames, as unpack_header of wire/header.py does. The offsets and masks are defined
// from the table in that file before this one is compiled, and the fields of structs after it
// (wire/native.py).
#pragma once

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

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
static const size_t FOLDED = 64;

#ifdef __x86_64__
// The same with carry-less multiplication, for multiples of 16 bytes from 64 on (Gopal et al., "Fast
// CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel, 2009): four times 128
// bits are folded over the next ones, then into one, and reduced to the remainder.
static const bool can_fold = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");

#define FOLDING __attribute__((target("pclmul,sse4.1")))
FOLDING static inline __m128i load128(const u8* p) { return _mm_loadu_si128((const __m128i*)p); }
FOLDING static inline __m128i fold(__m128i x, __m128i by, __m128i next) {
    const __m128i low = _mm_clmulepi64_si128(x, by, 0x00), high = _mm_clmulepi64_si128(x, by, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}
FOLDING static u32 folded_crc(u32 c, const u8* p, size_t size) {
    const __m128i by_512 = _mm_set_epi64x(0x01c6e41596, 0x0154442bd4);
    const __m128i by_128 = _mm_set_epi64x(0x00ccaa009e, 0x01751997d0);
    const __m128i by_64 = _mm_set_epi64x(0, 0x0163cd6124);
    const __m128i polynomial = _mm_set_epi64x(0x01f7011641, 0x01db710641);
    const __m128i low_words = _mm_setr_epi32(~0, 0, ~0, 0);
    __m128i x[4];
    for (int i = 0; i < 4; i++) x[i] = load128(p + 16 * i);
    x[0] = _mm_xor_si128(x[0], _mm_cvtsi32_si128((int)c));
    for (p += 64, size -= 64; size >= 64; p += 64, size -= 64)
        for (int i = 0; i < 4; i++) x[i] = fold(x[i], by_512, load128(p + 16 * i));
    __m128i one = x[0];
    for (int i = 1; i < 4; i++) one = fold(one, by_128, x[i]);
    for (; size >= 16; p += 16, size -= 16) one = fold(one, by_128, load128(p));
    one = _mm_xor_si128(_mm_srli_si128(one, 8), _mm_clmulepi64_si128(one, by_128, 0x10));
    const __m128i rest = _mm_srli_si128(one, 4);
    one = _mm_xor_si128(rest, _mm_clmulepi64_si128(_mm_and_si128(one, low_words), by_64, 0x00));
    // Barrett's reduction.
    __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(one, low_words), polynomial, 0x10);
    quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low_words), polynomial, 0x00);
    return (u32)_mm_extract_epi32(_mm_xor_si128(one, quotient), 1);
}
#else
static const bool can_fold = false;
static u32 folded_crc(u32 c, const u8*, size_t) { return c; }
#endif

static inline u32 crc32(u32 before, const u8* p, size_t size) {
    const auto& t = crc_table.of;
    u32 c = ~before;
    if (can_fold && size >= FOLDED) {
        const size_t most = size & ~(size_t)15;
        c = folded_crc(c, p, most);
        p += most, size -= most;
    }
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
    u32 source, destination, block, count, fragment, group, round;
    bool fetch, ecn, echo;
};

static inline u32 kind_of(const u8* frame) { return frame[KIND_AT] & KIND_MASK; }

// Frames with this body only: others are left to Python.
static inline bool unpack(const u8* frame, size_t size, u8 protocol, u32 kind, size_t body_bytes, Fields& f) {
    if (size < BODY_AT + body_bytes || frame[12] != 8 || frame[13] != 0 || frame[14] != 0x45) return false;
    if (frame[23] != protocol || frame[20] & 0x3F || frame[21]) return false;
    if (kind_of(frame) != kind || frame[VERSION_AT] >> 4 != VERSION) return false;
    if (checksum_of(frame, body_bytes) != load32(frame + CHECKSUM_AT)) return false;
    f.source = load32(frame + SRC_ID_AT);
    f.destination = load32(frame + DST_ID_AT);
    f.block = load16(frame + BLOCK_ID_AT);
    f.count = load16(frame + COUNT_AT);
    f.fetch = frame[IS_FETCH_AT] & IS_FETCH_MASK;
    f.ecn = frame[ECN_AT] & ECN_MASK;
    f.echo = frame[ECHO_AT] & ECHO_MASK;
    f.fragment = load16(frame + FRAGMENT_AT);
    f.group = load16(frame + FEATURE_GROUP_AT);
    f.round = load32(frame + SESSION_AT);
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
