// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Packets, as far as a simulation needs them. Kinds are those of docs/protocol.md.
#pragma once

#include "base/events.h"

enum class Kind : uint8_t {
    FEATURE = 1,
    SUM = 2,
    DONE = 3,
    ADVANCE = 4,
    ACK = 6,
    RECALL = 7,
    MISSING = 8,
    NOTICE = 10,
    // Of flows in the background, which the protocol does not know.
    BACKGROUND = 11,
    BACKGROUND_ACK = 12,
};

/// Kinds of the exchange, and all.
constexpr int kExchangeKinds = 11;
constexpr int kKinds = 13;
/// A full frame of the background.
constexpr uint32_t kFullFrameBytes = 1500;

/// A packet. Lanes are not carried: nothing here depends on them.
struct Packet {
    Kind kind;
    bool ecn = false;
    /// FEATURE: an ACK is wanted.
    bool echo = false;
    /// ACK between hosts: a bit for each frame of its run that has not arrived.
    uint8_t missing = 0;
    /// The worker that sent it, or, if a switch made it, the worker that gets it.
    uint16_t worker = 0;
    /// FEATURE, SUM: contributions in it. ACK, and FEATURE between hosts: frames it confirms.
    /// NOTICE: data packets that came marked. BACKGROUND: bytes.
    uint16_t count = 1;
    /// FEATURE: its place among all packets. SUM, and FEATURE that overflowed: the row of the
    /// destination. RECALL, MISSING: that row. Between hosts: the receiver. BACKGROUND and its
    /// ACK: the place in its flow.
    uint32_t id = 0;
    /// FEATURE, ACK: the group. Between hosts: the frame's place among those of its sender, and
    /// for ACK and RECALL that of the last frame of the run. BACKGROUND and its ACK: the flow.
    /// RECALL of a sum, and its answer: the fragment among those of all blocks, from 1.
    uint32_t group = 0;
    /// FEATURE, ACK: when the FEATURE was sent.
    Picoseconds asked = 0;
    /// FEATURE, SUM: of the frame. 0: those of its kind.
    uint16_t bytes = 0;
    /// Between hosts: switches only forward it.
    bool between_hosts = false;
};

/// Bytes of a frame, as the emulation counts them; where frames of a kind differ, of most of them.
constexpr uint32_t FrameBytes(Kind kind) {
    switch (kind) {
        case Kind::FEATURE:
        case Kind::SUM:
            return 188;
        case Kind::DONE:
        case Kind::ADVANCE:
            return 88;
        case Kind::BACKGROUND:
            return kFullFrameBytes;
        default:
            return 60;
    }
}

constexpr uint32_t FrameBytes(const Packet& packet) {
    if (packet.bytes != 0) {
        return packet.bytes;
    }
    return packet.kind == Kind::BACKGROUND ? packet.count : FrameBytes(packet.kind);
}

/// Whether a full queue loses it. Control packets are small, and have room beyond it.
constexpr bool CanBeLost(Kind kind) {
    return kind == Kind::FEATURE || kind == Kind::SUM || kind == Kind::BACKGROUND;
}

/// Whether it overtakes frames with numbers, as in p4src/loop.p4.
constexpr bool IsUrgent(const Packet& packet) {
    return !packet.between_hosts && static_cast<int>(packet.kind) < kExchangeKinds &&
           !CanBeLost(packet.kind);
}
