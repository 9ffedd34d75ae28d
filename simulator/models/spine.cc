// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "spine.h"

Spine::Spine(const Racks& racks, uint32_t number, bool host_based)
    : racks_(racks),
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
        TellAll(Kind::NOTICE, now);
        break;
    default:
        const uint32_t worker = host_based_ ? packet.id : packet.worker;
        down_[racks_.LeafOf(worker)]->Send(packet, now);
    }
}

void
Spine::Collect(Picoseconds now)
{
    if (++done_ == down_.size())
    {
        done_ = 0;
        TellAll(Kind::ADVANCE, now);
    }
}

void
Spine::TellAll(Kind kind, Picoseconds now)
{
    for (Link* down : down_)
    {
        down->Send({.kind = kind}, now);
    }
}
