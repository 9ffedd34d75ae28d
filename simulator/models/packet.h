// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// What travels, as far as a simulation needs it. Kinds are those of docs/protocol.md.
#ifndef SWITCHGNN_PACKET_H
#define SWITCHGNN_PACKET_H

#include "units.h"

enum class Kind : uint8_t
{
    FEATURE = 1,
    SUM = 2,
    DONE = 3,
    ADVANCE = 4,
    ACK = 6,
    NOTICE = 10,
};

constexpr int kKinds = 11;

/// A packet. Lanes are not carried: nothing here depends on them.
struct Packet
{
    Kind kind;
    bool ecn = false;
    /// FEATURE: an ACK is wanted.
    bool echo = false;
    /// Who sent it; in a packet of the switch's own, who gets it.
    uint16_t worker = 0;
    /// FEATURE, SUM: contributions in it. ACK, and FEATURE between hosts: frames it confirms.
    uint16_t count = 1;
    /// FEATURE: its place among all packets. SUM, and FEATURE that overflowed: the row of the
    /// destination. Between hosts: the receiver.
    uint32_t id = 0;
    /// FEATURE, ACK: the group.
    uint32_t group = 0;
    /// FEATURE, ACK: when the FEATURE was sent.
    Picoseconds asked = 0;
};

/// Bytes of a frame, as the emulation counts them.
constexpr uint32_t
FrameBytes(Kind kind)
{
    switch (kind)
    {
    case Kind::FEATURE:
    case Kind::SUM:
        return 188;
    case Kind::DONE:
    case Kind::ADVANCE:
        return 88;
    default:
        return 60;
    }
}

#endif
