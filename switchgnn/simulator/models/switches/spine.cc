// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "switches/spine.h"

Spine::Spine(const LeafTier& tier, uint32_t number, bool host_based)
    : tier_(tier),
      number_(number),
      host_based_(host_based)
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
        TellOthers(packet, now);
        break;
    default:
        const uint32_t worker = host_based_ ? packet.id : packet.worker;
        down_[tier_.LeafOf(worker)]->Send(packet, now);
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
    for (Link* down : down_)
    {
        down->Send({.kind = Kind::ADVANCE}, now);
    }
}

void
Spine::TellOthers(const Packet& notice, Picoseconds now)
{
    for (uint32_t leaf = 0; leaf < down_.size(); ++leaf)
    {
        if (leaf != tier_.LeafOf(notice.worker))
        {
            down_[leaf]->Send({.kind = Kind::NOTICE}, now);
        }
    }
}
