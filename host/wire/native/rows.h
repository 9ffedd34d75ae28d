// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Takes the frames of a round of other workers that are plainly right, and say nothing else: those
// that ask for nothing, carry no mark, and complete no group. All else is left to direct/.
#pragma once

#include "frames.h"

struct RowSieve {
    u32 protocol, group;
    u32 round, mark, receiver, workers, fragments;
    const u32* first;   // by worker: where its frames begin, among all
    const u32* frames;  // by worker: how many there are
    u8* seen;           // by frame
    u8* payloads;       // by frame
    u32* left_of_row;   // by row: frames that are missing
    u8* whole;          // by row
    u32 taken;
    u8* heard;  // by worker
    // Groups of which a frame of this batch is left: what comes behind it must not overtake it, as
    // an acknowledgement with a gap says that a frame is lost.
    u32* held;
    u32 held_count;

    bool is_held(u32 group_at) const {
        for (u32 i = 0; i < held_count; i++)
            if (held[i] == group_at) return true;
        return false;
    }
    void hold(u32 group_at) {
        if (!is_held(group_at)) held[held_count++] = group_at;
    }
    bool completes_group(const u8* of_peer, u32 number, u32 count) const {
        const u32 begin = number - number % group;
        const u32 end = begin + group < count ? begin + group : count;
        for (u32 i = begin; i < end; i++)
            if (i != number && !of_peer[i]) return false;
        return true;
    }
    bool take(const u8* frame, const Fields& f) {
        const u32 peer = f.block >> 8, number = f.source;
        if ((f.block & 0xFF) != receiver || peer >= workers || f.destination != mark) return false;
        if (number >= frames[peer]) return false;
        const u32 place = first[peer] + number, group_at = place - number % group;
        if (f.ecn || f.echo || ce_marked(frame) || seen[place] || is_held(group_at) ||
            completes_group(seen + first[peer], number, frames[peer])) {
            hold(group_at);
            return false;
        }
        seen[place] = 1;
        memcpy(payloads + (size_t)place * FRAGMENT_BYTES, frame + BODY_AT, FRAGMENT_BYTES);
        const u32 row = place / fragments;
        if (!--left_of_row[row]) whole[row] = 1;
        heard[peer] = 1;
        taken++;
        return true;
    }
};

extern "C" u32 sift_rows(RowSieve** sieves, u32 open, const Arrived* arrived, u32 first, u32 end, u32* left) {
    u32 others = 0;
    for (u32 s = 0; s < open; s++) sieves[s]->taken = sieves[s]->held_count = 0;
    for (u32 i = first; i < end; i++) {
        const u8* frame = arrived->frame(i);
        Fields f;
        bool taken = false;
        if (open && unpack(frame, arrived->size(i), sieves[0]->protocol, KIND_FEATURE, FRAGMENT_BYTES, f))
            for (u32 s = 0; s < open && !taken; s++) taken = sieves[s]->round == f.round && sieves[s]->take(frame, f);
        if (!taken) left[others++] = i;
    }
    return others;
}
