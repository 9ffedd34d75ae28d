// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "peer.h"

Peer::Peer(uint32_t worker,
           const PaceOptions& pace,
           std::span<const uint8_t> to,
           std::span<const uint8_t> confirms,
           uint64_t awaited)
    : Host(worker, pace),
      to_(to),
      confirms_(confirms),
      awaited_(awaited),
      marked_(256)
{
}

void
Peer::Start(Picoseconds now)
{
    SendSome(now);
    FinishIfThrough(now);
}

void
Peer::Receive(const Packet& packet, uint32_t, Picoseconds now)
{
    if (packet.kind == Kind::ACK)
    {
        TakeAck(packet, now);
    }
    else
    {
        TakeFrame(packet, now);
    }
    FinishIfThrough(now);
}

void
Peer::SendNext(Picoseconds now)
{
    Packet packet{.kind = Kind::FEATURE, .worker = static_cast<uint16_t>(worker_), .asked = now};
    packet.id = to_[sent_];
    packet.count = confirms_[sent_];
    packet.echo = packet.count != 0;
    ++sent_;
    up_->Send(packet, now);
}

void
Peer::TakeFrame(const Packet& packet, Picoseconds now)
{
    --awaited_;
    marked_[packet.worker] = marked_[packet.worker] || packet.ecn;
    if (!packet.echo)
    {
        return;
    }
    // An ACK says whether frames came marked, and is not marked itself.
    Packet ack{.kind = Kind::ACK, .ecn = marked_[packet.worker], .asked = packet.asked};
    marked_[packet.worker] = false;
    ack.worker = static_cast<uint16_t>(worker_);
    ack.id = packet.worker;
    ack.count = packet.count;
    up_->Send(ack, now);
}

void
Peer::TakeAck(const Packet& packet, Picoseconds now)
{
    if (packet.ecn)
    {
        congestion_.SlowDown(now);
    }
    congestion_.Measured(now - packet.asked);
    confirmed_ += packet.count;
    if (!packet.ecn)
    {
        congestion_.Acknowledged(packet.count);
    }
    SendSome(now);
}

void
Peer::FinishIfThrough(Picoseconds now)
{
    if (!Finished() && awaited_ == 0 && confirmed_ == to_.size())
    {
        Finish(now);
    }
}
