// Takes the awaited sums of an all-reduce, as SumRing.take of reduce/frames.py does. All else is
// left to Python.
#pragma once

#include "frames.h"

static const u32 MOST_WIDTH = 31;

struct ReducedFastPath : ReducedFields {
    bool take_plain(const u8* frame, size_t size) {
        if (size < BODY_AT) return false;
        const u32 kind = kind_of(frame);
        if (kind != KIND_REDUCED && kind != KIND_REDUCING) return ++ignored;
        const u32 width = load16(frame + FRAGMENT_AT);
        const size_t body = (size_t)GROUP_BYTES * (width + 1);
        Fields f;
        if (width > MOST_WIDTH || !unpack(frame, size, PROTOCOL, KIND_REDUCED, body, f)) return false;
        const u64 number = (u64)(f.round & 0xFFFFFF) << 16 | f.block;
        const u32 slot = number & mask;
        if (f.round >> 24 != session || number < begin || number >= end || !awaited[slot]) return false;
        if (f.count != workers || width != widths[slot] || f.group < sent_codes[slot] || f.group > 255) return false;
        awaited[slot] = 0;
        codes[slot] = f.group;
        memcpy(bodies + (size_t)slot * FRAGMENT_BYTES * 8, frame + BODY_AT, body);
        marked += f.ecn;
        numbers[taken++] = number;
        return true;
    }
};

extern "C" void take_reduced(ReducedFastPath* fast_path, const Arrived* arrived, u32 first, u32 end) {
    fast_path->taken = fast_path->marked = fast_path->ignored = fast_path->left = 0;
    for (u32 i = first; i < end; i++)
        if (!fast_path->take_plain(arrived->frame(i), arrived->size(i))) fast_path->left_frames[fast_path->left++] = i;
}
