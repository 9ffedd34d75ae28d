// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "background/flow.h"

#include <algorithm>

namespace
{
// Ethernet's shortest, without its checksum, as everywhere here.
constexpr uint64_t kShortestFrame = 60;
} // namespace

Flow::Flow(const Drawn& drawn, const PaceOptions& pace)
    : Host(drawn.from, pace),
      drawn_(drawn),
      frames_((drawn.bytes + kFullFrameBytes - 1) / kFullFrameBytes),
      timer_(ns3::Create<Timer>([this](Picoseconds now) { Late(now); })),
      here_(frames_),
      missing_(frames_)
{
}

void
Flow::Start(Picoseconds now)
{
    began_ = now;
    SendSome(now);
}

uint16_t
Flow::BytesAt(uint64_t place) const
{
    const uint64_t rest = drawn_.bytes - place * kFullFrameBytes;
    return static_cast<uint16_t>(std::clamp<uint64_t>(rest, kShortestFrame, kFullFrameBytes));
}

uint64_t
Flow::FrameBytes() const
{
    return (frames_ - 1) * kFullFrameBytes + BytesAt(frames_ - 1);
}

/// Frame by frame up, and the first of them, which is the longest, once more down.
Picoseconds
Flow::Ideal(const LinkOptions& link) const
{
    const auto overhead = static_cast<double>(link.overhead_bytes);
    const double all = static_cast<double>(FrameBytes()) + overhead * static_cast<double>(frames_);
    return link.TimeOf(all) + link.TimeOf(BytesAt(0) + overhead) + 2 * link.delay;
}

void
Flow::SendNext(Picoseconds now)
{
    Send(static_cast<uint32_t>(sent_++), now);
}

void
Flow::Send(uint32_t place, Picoseconds now)
{
    Packet packet{.kind = Kind::BACKGROUND, .worker = static_cast<uint16_t>(worker_), .asked = now};
    packet.count = BytesAt(place);
    packet.id = place;
    packet.group = drawn_.number;
    bytes_sent_ += packet.count;
    unconfirmed_.push_back({place, now});
    if (pace_.losses && !timer_->On())
    {
        timer_->SetTo(now + congestion_.Trip().BackedOff(attempts_));
    }
    up_->Send(packet, now);
}

void
Flow::Take(const Packet& packet, Link& up, Picoseconds now)
{
    Packet ack{.kind = Kind::BACKGROUND_ACK, .ecn = packet.ecn, .asked = packet.asked};
    ack.worker = static_cast<uint16_t>(drawn_.to);
    ack.id = packet.id;
    ack.group = packet.group;
    up.Send(ack, now);
    if (here_[packet.id])
    {
        bytes_repeated_ += packet.count;
        return;
    }
    here_[packet.id] = true;
    bytes_arrived_ += packet.count;
    if (--missing_ == 0)
    {
        arrived_at_ = now;
    }
}

void
Flow::Receive(const Packet& packet, uint32_t, Picoseconds now)
{
    congestion_.Measured(now - packet.asked);
    if (!Confirm(packet.id))
    {
        return;
    }
    attempts_ = 0;
    congestion_.Marked(packet.ecn ? 1 : 0);
    congestion_.Acknowledged(1);
    if (++confirmed_ == frames_)
    {
        timer_->Stop();
        Finish(now);
        return;
    }
    SendSome(now);
}

/// Tell whether it is news. Mostly it is the first of all.
bool
Flow::Confirm(uint32_t place)
{
    const auto found = std::find_if(unconfirmed_.begin(),
                                    unconfirmed_.end(),
                                    [place](const auto& each) { return each.place == place; });
    if (found == unconfirmed_.end())
    {
        return false;
    }
    unconfirmed_.erase(found);
    return true;
}

void
Flow::Late(Picoseconds now)
{
    const Picoseconds patience = congestion_.Trip().BackedOff(attempts_);
    if (unconfirmed_.front().sent_at + patience <= now)
    {
        ++attempts_;
        congestion_.Lost(now);
    }
    // What is sent again goes to the end, so this looks at each once.
    for (size_t left = unconfirmed_.size(); left > 0; --left)
    {
        const Unconfirmed first = unconfirmed_.front();
        if (first.sent_at + patience > now)
        {
            break;
        }
        unconfirmed_.pop_front();
        Send(first.place, now);
    }
    const Picoseconds next = congestion_.Trip().BackedOff(attempts_);
    timer_->SetTo(std::max(now + 1, unconfirmed_.front().sent_at + next));
}
