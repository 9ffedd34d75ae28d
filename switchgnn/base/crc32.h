#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

// The CRC-32 of zlib, eight bytes at a time (Kounavis and Berry, 2008).
struct CrcTable {
    uint32_t of[8][256];
    CrcTable() {
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t c = i;
            for (int bit = 0; bit < 8; bit++) c = c >> 1 ^ (c & 1 ? 0xEDB88320u : 0);
            of[0][i] = c;
        }
        for (uint32_t i = 0; i < 256; i++)
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
FOLDING static inline __m128i load128(const uint8_t* p) { return _mm_loadu_si128((const __m128i*)p); }
FOLDING static inline __m128i fold(__m128i x, __m128i by, __m128i next) {
    const __m128i low = _mm_clmulepi64_si128(x, by, 0x00), high = _mm_clmulepi64_si128(x, by, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}
FOLDING static uint32_t folded_crc(uint32_t c, const uint8_t* p, size_t size) {
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
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(one, quotient), 1);
}
#else
static const bool can_fold = false;
static uint32_t folded_crc(uint32_t c, const uint8_t*, size_t) { return c; }
#endif

static inline uint32_t crc32(uint32_t before, const uint8_t* p, size_t size) {
    const auto& t = crc_table.of;
    uint32_t c = ~before;
    if (can_fold && size >= FOLDED) {
        const size_t most = size & ~(size_t)15;
        c = folded_crc(c, p, most);
        p += most, size -= most;
    }
    for (; size >= 8; p += 8, size -= 8) {
        uint32_t low, high;
        memcpy(&low, p, 4);
        memcpy(&high, p + 4, 4);
        low ^= c;
        c = t[7][low & 255] ^ t[6][low >> 8 & 255] ^ t[5][low >> 16 & 255] ^ t[4][low >> 24] ^
            t[3][high & 255] ^ t[2][high >> 8 & 255] ^ t[1][high >> 16 & 255] ^ t[0][high >> 24];
    }
    while (size--) c = c >> 8 ^ t[0][(c ^ *p++) & 255];
    return ~c;
}
