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
    // As ECMP does: the frames of a sender to a receiver stay in their order.
    uplinks_.SendByKey(uint64_t{packet.worker} << 32 | packet.id, packet, now);
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
        TakeFromSpine(packet, now);
        break;
    case Kind::ADVANCE:
        Advance(now);
        break;
    case Kind::NOTICE:
        TellAll(packet, now);
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

void
AddingLeaf::Done(Picoseconds now)
{
    uplinks_.SendTo(kBarrierSpine, {.kind = Kind::DONE}, now);
}

ProgramLeaf::ProgramLeaf(const Schedule& schedule,
                         Slots& slots,
                         Picoseconds service,
                         Uplinks& uplinks,
                         const SumRoutes& routes)
    : AddingLeaf(schedule, slots, service, uplinks),
      routes_(routes)
{
}

/// It is handed on as it came, past all slots: see p4src/passage.p4.
void
ProgramLeaf::TakeFromSpine(const Packet& packet, Picoseconds now)
{
    SendDown(packet, adder_.WorkerOf(packet.id), now);
}

void
ProgramLeaf::Send(const Packet& packet, uint32_t worker, Picoseconds now)
{
    const bool part = packet.kind == Kind::SUM || packet.kind == Kind::FEATURE;
    if (!part || !routes_.Crosses(packet.id))
    {
        SendDown(packet, worker, now);
        return;
    }
    CountUp(packet.kind);
    uplinks_.SendTo(routes_.SpineOf(packet.id), packet, now);
}

void
ProgramLeaf::Notice(const Packet& packet, Picoseconds now)
{
    uplinks_.SendTo(kBarrierSpine, packet, now);
}
