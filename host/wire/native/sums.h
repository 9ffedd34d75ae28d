// Takes the sums of the units in flight that are plainly right: whole, complete, awaited, and
// without any doubt. Acknowledgements are reported. All else is left to innetwork/.
#pragma once

#include "frames.h"

#include <algorithm>

enum Awaiting { HERE = 0, PLAINLY = 1 };

// Bits of a number by their code in the header, as BITS of header.py.
static const u32 BITS_OF[4] = {32, 16, 8, 0};
static const u32 WORD = 4, GROUP = GROUP_BYTES / WORD;

// Writes narrow numbers as words, as unpack_lanes of narrow.py reads them.
static inline void widen(const u8* body, u8* out, u32 lanes, u32 bits) {
    if (bits == 0) {
        memset(out, 0, (size_t)lanes * WORD);
        return;
    }
    const u32 parts = 32 / bits, mask = (1u << bits) - 1, bias = 1u << (bits - 1);
    for (u32 first = 0; first < lanes; first += GROUP) {
        const u32 group = first / GROUP, shift = 32 - bits * (group % parts + 1);
        const u8* words = body + group / parts * GROUP_BYTES;
        for (u32 i = 0; i < GROUP; i++)
            store32(out + (size_t)(first + i) * WORD, (load32(words + i * WORD) >> shift & mask) - bias);
    }
}
// The bytes of a body of narrow numbers.
static inline u32 narrow_bytes(u32 bytes, u32 bits) {
    return (bytes * bits / 32 + GROUP_BYTES - 1) / GROUP_BYTES * GROUP_BYTES;
}

struct SumFastPath : SumFields {
    bool here(const u8* frame) const {
        return load32(frame + SESSION_AT) == round && load16(frame + BLOCK_ID_AT) == block && load16(frame + FRAGMENT_AT) == fragment;
    }
    bool take(const Fields& f, const u8* body, u32 bits) {
        if (f.fetch || f.ecn) return false;
        const u32 low = std::lower_bound(vertices, vertices + sums, f.destination) - vertices;
        if (low == sums || vertices[low] != f.destination || counts[low] != f.count) return false;
        const u32 index = indices[low];
        if (awaited[index] != PLAINLY) return false;
        awaited[index] = HERE;
        u8* out = payloads + (size_t)index * body_bytes;
        if (bits == 32) memcpy(out, body, body_bytes);
        else widen(body, out, body_bytes / WORD, bits);
        taken++;
        if (f.ack) {
            groups[acknowledgements] = f.group;
            accepted[acknowledgements++] = f.source;
        }
        return true;
    }
    // Takes all rows of a bundle, or none.
    bool take_bundle(const Fields& f, const u8* places, const u8* body, u32 bits) {
        if (f.fetch || f.ecn || f.destination < SUM_BUNDLES) return false;
        bool any = false;
        for (u32 row = 0; row < PLACES; row++) {
            const u32 place = load16(places + row * PLACE_BYTES);
            if (place == NO_PLACE) continue;
            any = true;
            if (row >= rows || place >= sums || awaited[place] != PLAINLY) return false;
            for (u32 before = 0; before < row; before++)
                if (load16(places + before * PLACE_BYTES) == place) return false;
        }
        if (!any) return false;
        u8 wide[LAST_LANES * WORD];
        if (bits != 32) widen(body, wide, body_bytes / WORD, bits);
        const u8* const from = bits == 32 ? body : wide;
        const u32 row_bytes = body_bytes / rows;
        for (u32 row = 0; row < rows; row++) {
            const u32 place = load16(places + row * PLACE_BYTES);
            if (place == NO_PLACE) continue;
            awaited[place] = HERE;
            memcpy(payloads + (size_t)place * row_bytes, from + row * row_bytes, row_bytes);
            taken++;
        }
        return true;
    }
    bool take_plain(const u8* frame, size_t size) {
        if (size < BODY_AT || !here(frame)) return false;
        Fields f;
        const u32 bits = BITS_OF[(frame[BITS_AT] & BITS_MASK) >> 2], body = narrow_bytes(body_bytes, bits);
        const u32 before = rows > 1 ? PLACES * PLACE_BYTES : 0;
        if ((bits == 32 || bits == 0 || body < narrow_bytes(body_bytes, 2 * bits)) &&
            unpack(frame, size, PROTOCOL, KIND_SUM, before + body, f))
            return before ? take_bundle(f, frame + BODY_AT, frame + BODY_AT + before, bits) : take(f, frame + BODY_AT, bits);
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
