// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "switches/spine.h"

Spine::Spine(const LeafTier& tier, uint32_t number)
    : tier_(tier),
      number_(number)
{
}

void
Spine::Receive(const Packet& packet, uint32_t, Picoseconds now)
{
    switch (packet.kind)
    {
    case Kind::DONE:
        Collect(now);
        break;
    case Kind::NOTICE:
        Notice(packet, now);
        break;
    default:
        Take(packet, now);
    }
}

void
Spine::Collect(Picoseconds now)
{
    if (++done_ < down_.size())
    {
        return;
    }
    done_ = 0;
    CheckComplete();
    for (Link* down : down_)
    {
        down->Send({.kind = Kind::ADVANCE}, now);
    }
}

void
Spine::Notice(const Packet& notice, Picoseconds now)
{
    for (Link* down : down_)
    {
        down->Send(notice, now);
    }
}

AddingSpine::AddingSpine(const LeafTier& tier, uint32_t number, Slots& slots)
    : Spine(tier, number),
      adder_(slots)
{
}

void
AddingSpine::Take(const Packet& packet, Picoseconds now)
{
    ++adder_.tally.passes;
    Packet leaving;
    if (adder_.Add(packet.id, packet, leaving))
    {
        SendToLeafOf(adder_.WorkerOf(packet.id), leaving, now);
    }
}

void
RelayingSpine::Notice(const Packet& notice, Picoseconds now)
{
    for (uint32_t leaf = 0; leaf < down_.size(); ++leaf)
    {
        if (leaf != tier_.LeafOf(notice.worker))
        {
            down_[leaf]->Send(notice, now);
        }
    }
}
