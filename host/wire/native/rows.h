// Takes the frames of a round of other workers that are plainly right, and say nothing else: those
// that ask for nothing, carry no mark, and complete no group. All else is left to direct/.
#pragma once

#include "frames.h"

#include <algorithm>

struct RowFastPath : RowFields {
    bool is_held(u32 group_at) const { return std::find(held, held + held_count, group_at) != held + held_count; }
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
    bool take(const u8* frame, size_t body, const Fields& f) {
        const u32 peer = f.block >> 8, number = f.source;
        if ((f.block & 0xFF) != receiver || peer >= workers || f.destination != mark) return false;
        if (number >= frames[peer]) return false;
        const u64 at = begin[peer] + (u64)number * payload_bytes, room = begin[peer + 1] - at;
        const u32 index = first[peer] + number, group_at = index - number % group;
        if (body != (room < payload_bytes ? room : payload_bytes) || f.ecn || f.echo || ce_marked(frame) || seen[index] || is_held(group_at) ||
            completes_group(seen + first[peer], number, frames[peer])) {
            hold(group_at);
            return false;
        }
        seen[index] = 1;
        memcpy(payloads + at, frame + BODY_AT, body);
        for (u64 row = at / row_bytes; row <= (at + body - 1) / row_bytes; row++)
            if (!--left_of_row[row]) whole[row] = 1;
        heard[peer] = 1;
        taken++;
        return true;
    }
};

// The bytes of rows that IPv4 tells, 0 where it tells none; of a frame with all headers.
static inline size_t rows_told(const u8* frame) {
    const size_t told = load16(frame + IPV4_LENGTH_AT), headers = BODY_AT - ETHERNET_BYTES;
    return told > headers && (told - headers) % 4 == 0 ? told - headers : 0;
}

extern "C" u32 take_rows(RowFastPath** fast_paths, u32 open, const Arrived* arrived, u32 first, u32 end, u32* left) {
    u32 others = 0;
    for (u32 s = 0; s < open; s++) fast_paths[s]->taken = fast_paths[s]->held_count = 0;
    for (u32 i = first; i < end; i++) {
        const u8* frame = arrived->frame(i);
        Fields f;
        bool taken = false;
        const size_t size = arrived->size(i), body = size < BODY_AT ? 0 : rows_told(frame);
        if (open && body && unpack(frame, size, fast_paths[0]->protocol, KIND_FEATURE, body, f))
            for (u32 s = 0; s < open && !taken; s++)
                taken = fast_paths[s]->round == f.round && fast_paths[s]->take(frame, body, f);
        if (!taken) left[others++] = i;
    }
    return others;
}
