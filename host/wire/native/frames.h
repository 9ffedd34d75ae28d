// Reads and checks frames, as unpack_header of wire/header.py does, and seals them. The offsets and
// masks are defined from the table in that file before this one is compiled, and the fields of
// structs after it (wire/native.py).
#pragma once

#include "crc32.h"

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

static inline u32 checksum_of(const u8* frame, size_t body_bytes) {
    return crc32(crc32(0, frame + HEADER_AT, CHECKED_BYTES), frame + BODY_AT, body_bytes);
}

struct Fields {
    u32 source, destination, block, count, fragment, group, round;
    bool ack, fetch, ecn, echo;
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
    f.ack = frame[IS_ACK_AT] & IS_ACK_MASK;
    f.fetch = frame[IS_FETCH_AT] & IS_FETCH_MASK;
    f.ecn = frame[ECN_AT] & ECN_MASK;
    f.echo = frame[ECHO_AT] & ECHO_MASK;
    f.fragment = load16(frame + FRAGMENT_AT);
    f.group = load16(frame + FEATURE_GROUP_AT);
    f.round = load32(frame + SESSION_AT);
    return true;
}

// Seals frames that are to leave: each has frame_bytes of room, and as many bytes, or those of its size.
extern "C" void write_checksums(u8* frames, u64 frame_bytes, u64 count, const u32* sizes) {
    for (u64 i = 0; i < count; i++) {
        u8* frame = frames + i * frame_bytes;
        store32(frame + CHECKSUM_AT, checksum_of(frame, (sizes ? sizes[i] : frame_bytes) - BODY_AT));
    }
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
