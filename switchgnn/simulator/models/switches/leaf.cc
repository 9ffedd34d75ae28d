// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "switches/leaf.h"

void
PlainLeaf::Receive(const Packet& packet, uint32_t, Picoseconds now)
{
    if (uplinks_.Here(packet.id))
    {
        down_[packet.id - uplinks_.First()]->Send(packet, now);
        return;
    }
    // As ECMP: the frames of a sender to a receiver stay in their order.
    uplinks_.Send(packet, uint64_t{packet.worker} << 32 | packet.id, now);
}

AddingLeaf::AddingLeaf(const Schedule& schedule,
                       Slots& slots,
                       Picoseconds service,
                       Uplinks& uplinks)
    : AddingSwitch(schedule, slots, service),
      uplinks_(uplinks)
{
}

void
AddingLeaf::Receive(const Packet& packet, uint32_t port, Picoseconds now)
{
    if (!uplinks_.FromSpine(port))
    {
        AddingSwitch::Receive(packet, port, now);
        return;
    }
    switch (packet.kind)
    {
    case Kind::SUM:
    case Kind::FEATURE:
        Merge(packet, now);
        break;
    case Kind::ADVANCE:
        Advance(now);
        break;
    case Kind::NOTICE:
        TellAll(Kind::NOTICE, now);
        break;
    default:
        break;
    }
}

Tally
AddingLeaf::Count() const
{
    Tally tally = AddingSwitch::Count();
    tally.sums -= sums_up_;
    tally.overflowed -= features_up_;
    return tally;
}

/// One contribution, one pass; if the sum is complete, it leaves in the same one.
void
AddingLeaf::Merge(const Packet& packet, Picoseconds now)
{
    if (packet.ecn)
    {
        marked_.insert(packet.id);
    }
    ++tally_.passes;
    Add(packet.id, packet, now);
}

void
AddingLeaf::Send(const Packet& packet, uint32_t worker, Picoseconds now)
{
    Packet sent = packet;
    const bool part = packet.kind == Kind::SUM || packet.kind == Kind::FEATURE;
    sent.ecn = part && !marked_.empty() && marked_.erase(packet.id) != 0;
    if (uplinks_.Here(worker))
    {
        down_[worker - uplinks_.First()]->Send(sent, now);
        return;
    }
    ++(packet.kind == Kind::SUM ? sums_up_ : features_up_);
    sent.worker = static_cast<uint16_t>(worker);
    uplinks_.Send(sent, packet.id, now);
}

void
AddingLeaf::Done(Picoseconds now)
{
    uplinks_.SendToFirst({.kind = Kind::DONE}, now);
}

/// Its own workers hear of it as soon as in a star: who has sent it must not halve twice.
void
AddingLeaf::Notice(const Packet& packet, Picoseconds now)
{
    TellAll(Kind::NOTICE, now);
    uplinks_.SendToFirst({.kind = Kind::NOTICE, .worker = packet.worker}, now);
}
