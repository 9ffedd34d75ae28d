// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Takes the sums of the units in flight that are plainly right: whole, complete, awaited, and
// without any doubt. Acknowledgements are reported. All else is left to innetwork/.
#pragma once

#include "frames.h"

enum Awaiting { HERE = 0, PLAINLY = 1 };

// Bits of a number by their code in the header, as BITS of header.py.
static const u32 BITS_OF[4] = {32, 16, 8, 0};
static const u32 WORD = 4, LANES_OF_BANK = FRAGMENT_BYTES / WORD;

// Writes narrow numbers as words, as unpack_lanes of narrow.py reads them.
static inline void widen(const u8* body, u8* out, u32 lanes, u32 bits) {
    if (bits == 0) {
        memset(out, 0, (size_t)lanes * WORD);
        return;
    }
    const u32 bank = lanes < LANES_OF_BANK ? lanes : LANES_OF_BANK, parts = 32 / bits, words = bank / parts;
    const u32 mask = (1u << bits) - 1, bias = 1u << (bits - 1);
    for (u32 first = 0; first < lanes; first += bank, body += words * WORD)
        for (u32 i = 0; i < words; i++) {
            const u32 word = load32(body + i * WORD);
            for (u32 part = 0; part < parts; part++)
                store32(out + (size_t)(first + part * words + i) * WORD, (word >> (32 - bits * (part + 1)) & mask) - bias);
        }
}

struct SumFastPath : SumFields {
    bool here(const u8* frame) const {
        return load32(frame + SESSION_AT) == round && load16(frame + BLOCK_ID_AT) == block && load16(frame + FRAGMENT_AT) == fragment;
    }
    bool take(const Fields& f, const u8* body, u32 bits) {
        if (f.fetch || f.ecn) return false;
        u32 low = 0, high = sums;
        while (low < high) {
            const u32 middle = (low + high) / 2;
            if (vertices[middle] < f.destination) low = middle + 1;
            else high = middle;
        }
        if (low == sums || vertices[low] != f.destination || counts[low] != f.count) return false;
        const u32 index = indices[low];
        if (awaited[index] != PLAINLY) return false;
        awaited[index] = HERE;
        u8* out = payloads + (size_t)index * body_bytes;
        if (bits == 32) memcpy(out, body, body_bytes);
        else widen(body, out, body_bytes / WORD, bits);
        taken++;
        return true;
    }
    bool take_plain(const u8* frame, size_t size) {
        if (size < BODY_AT || !here(frame)) return false;
        Fields f;
        const u32 bits = BITS_OF[(frame[BITS_AT] & BITS_MASK) >> 2], body = body_bytes / 32 * bits;
        if ((bits == 32 || bits == 0 || body >= LEAST_NARROW_BYTES) && unpack(frame, size, PROTOCOL, KIND_SUM, body, f))
            return take(f, frame + BODY_AT, bits);
        if (unpack(frame, size, PROTOCOL, KIND_ACK, 0, f) && !f.ecn) {
            groups[acknowledgements] = f.group;
            accepted[acknowledgements++] = f.count;
            return true;
        }
        return false;
    }
};

// Returns how many frames none of them has taken.
extern "C" u32 take_sums(SumFastPath** fast_paths, u32 paths, const Arrived* arrived, u32 first, u32 end, u32* left) {
    u32 rest = 0;
    for (u32 k = 0; k < paths; k++) fast_paths[k]->taken = fast_paths[k]->acknowledgements = 0;
    for (u32 i = first; i < end; i++) {
        u32 k = 0;
        while (k < paths && !fast_paths[k]->take_plain(arrived->frame(i), arrived->size(i))) k++;
        if (k == paths) left[rest++] = i;
    }
    return rest;
}
