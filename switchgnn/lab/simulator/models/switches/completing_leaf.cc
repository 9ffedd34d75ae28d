// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "switches/completing_leaf.h"

/// One contribution, one pass. If the sum is complete, it leaves in the same pass.
void
CompletingLeaf::TakeFromSpine(const Packet& packet, Picoseconds now)
{
    if (packet.ecn)
    {
        marked_.insert(packet.id);
    }
    ++adder_.tally.passes;
    Add(packet.id, packet, now);
}

void
CompletingLeaf::Send(const Packet& packet, uint32_t worker, Picoseconds now)
{
    Packet sent = packet;
    const bool part = packet.kind == Kind::SUM || packet.kind == Kind::FEATURE;
    sent.ecn = part && !marked_.empty() && marked_.erase(packet.id) != 0;
    if (uplinks_.Here(worker))
    {
        SendDown(sent, worker, now);
        return;
    }
    CountUp(packet.kind);
    sent.worker = static_cast<uint16_t>(worker);
    uplinks_.SendByKey(packet.id, sent, now);
}

/// Its own workers hear of it as soon as in a star, and once.
void
CompletingLeaf::Notice(const Packet& packet, Picoseconds now)
{
    TellAll(packet, now);
    uplinks_.SendTo(kBarrierSpine, packet, now);
}
