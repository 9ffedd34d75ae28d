// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "switch.h"

AddingSwitch::AddingSwitch(uint32_t workers,
                           const Schedule& schedule,
                           Slots& slots,
                           Picoseconds service)
    : Switch(workers),
      schedule_(schedule),
      slots_(slots),
      loop_(ns3::Create<Loop>(*this, service)),
      outlet_(ns3::Create<Outlet>([this](const Packet& packet, uint32_t worker, Picoseconds now) {
          down_[worker]->Send(packet, now);
      }))
{
}

void
AddingSwitch::Receive(const Packet& packet, uint32_t, Picoseconds now)
{
    switch (packet.kind)
    {
    case Kind::FEATURE:
        Take(packet, now);
        break;
    case Kind::DONE:
        Collect(now);
        break;
    case Kind::NOTICE:
        TellAll(Kind::NOTICE, now);
        break;
    default:
        break;
    }
}

void
AddingSwitch::Take(const Packet& packet, Picoseconds now)
{
    Circling circling{packet, schedule_.ContributionsOf(packet.id)};
    if (Pass(circling, now))
    {
        loop_->Add(circling, now);
    }
}

bool
AddingSwitch::Pass(Circling& circling, Picoseconds at)
{
    bool left = false;
    if (!circling.through)
    {
        left = Contribute(circling, at);
        circling.through = circling.left.empty();
        if (!circling.through || (left && circling.packet.echo))
        {
            return true;
        }
    }
    if (circling.packet.echo)
    {
        Packet ack{.kind = Kind::ACK, .asked = circling.packet.asked};
        ack.group = circling.packet.group;
        Leave(ack, circling.packet.worker, at);
    }
    return false;
}

bool
AddingSwitch::Contribute(Circling& circling, Picoseconds at)
{
    ++passes;
    size_t used = 0;
    bool left = false;
    for (const uint32_t word : circling.left)
    {
        ++used;
        ++contributions;
        const uint32_t row = schedule_.RowOf(word, circling.packet.id);
        Packet part{.kind = Kind::SUM, .id = row};
        const Fate fate = slots_.Add(row, circling.packet.count, part.count);
        if (fate != Fate::KEPT)
        {
            part.kind = fate == Fate::COMPLETED ? Kind::SUM : Kind::FEATURE;
            ++(fate == Fate::COMPLETED ? sums : overflowed);
            Leave(part, slots_.WorkerOf(row), at);
            left = true;
            break;
        }
        if (word & Schedule::kLastOfPass)
        {
            break;
        }
    }
    circling.left = circling.left.subspan(used);
    return left;
}

void
AddingSwitch::Leave(const Packet& packet, uint32_t worker, Picoseconds at)
{
    if (at == ns3::Simulator::Now().GetTimeStep())
    {
        down_[worker]->Send(packet, at);
    }
    else
    {
        outlet_->Add(packet, worker, at);
    }
}

void
AddingSwitch::Collect(Picoseconds now)
{
    if (++done_ < down_.size())
    {
        return;
    }
    done_ = 0;
    if (slots_.InUse() != 0)
    {
        throw SimulationError("All workers are done with a block, but sums are incomplete.");
    }
    TellAll(Kind::ADVANCE, now);
}

void
AddingSwitch::TellAll(Kind kind, Picoseconds now)
{
    for (uint32_t worker = 0; worker < down_.size(); ++worker)
    {
        down_[worker]->Send({.kind = kind, .worker = static_cast<uint16_t>(worker)}, now);
    }
}
