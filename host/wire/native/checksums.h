// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Writes the checksums of frames that are to leave.
#pragma once

#include "frames.h"

// Each frame has frame_bytes of room, and as many bytes, or those of its size.
extern "C" void write_checksums(u8* frames, u64 frame_bytes, u64 count, const u32* sizes) {
    for (u64 i = 0; i < count; i++) {
        u8* frame = frames + i * frame_bytes;
        store32(frame + CHECKSUM_AT, checksum_of(frame, (sizes ? sizes[i] : frame_bytes) - BODY_AT));
    }
}
