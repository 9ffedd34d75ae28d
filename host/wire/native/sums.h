// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Takes the sums of one fragment of one block that are plainly right: whole, complete, awaited, and
// without any doubt. Acknowledgements are reported. All else is left to innetwork/.
#pragma once

#include "frames.h"

enum Awaiting { HERE = 0, PLAINLY = 1 };

struct SumSieve {
    // What the frames must carry.
    u32 round, block, fragment;
    u32 body_bytes;  // of this fragment
    // The awaited sums, by ascending vertex: where each is, and the count that it must have.
    u32 sums;
    const u32* vertices;
    const u32* places;
    const u32* counts;
    u8* awaited;   // by place
    u8* payloads;  // by place
    // What has come of it.
    u32 taken, acknowledgements, left;
    u32* groups;
    u32* accepted;
    u32* left_frames;

    bool here(const Fields& f) const { return f.round == round && f.block == block && f.fragment == fragment; }
    bool take(const Fields& f, const u8* body) {
        if (!here(f) || f.fetch || f.ecn) return false;
        u32 low = 0, high = sums;
        while (low < high) {
            const u32 middle = (low + high) / 2;
            if (vertices[middle] < f.destination) low = middle + 1;
            else high = middle;
        }
        if (low == sums || vertices[low] != f.destination || counts[low] != f.count) return false;
        const u32 place = places[low];
        if (awaited[place] != PLAINLY) return false;
        awaited[place] = HERE;
        memcpy(payloads + (size_t)place * body_bytes, body, body_bytes);
        taken++;
        return true;
    }
    bool sift(const u8* frame, size_t size) {
        Fields f;
        if (unpack(frame, size, PROTOCOL, KIND_SUM, body_bytes, f)) return take(f, frame + BODY_AT);
        if (unpack(frame, size, PROTOCOL, KIND_ACK, 0, f) && here(f) && !f.ecn) {
            groups[acknowledgements] = f.group;
            accepted[acknowledgements++] = f.count;
            return true;
        }
        return false;
    }
};

extern "C" void sift_sums(SumSieve* sieve, const Arrived* arrived, u32 first, u32 end) {
    sieve->taken = sieve->acknowledgements = sieve->left = 0;
    for (u32 i = first; i < end; i++)
        if (!sieve->sift(arrived->frame(i), arrived->size(i))) sieve->left_frames[sieve->left++] = i;
}
