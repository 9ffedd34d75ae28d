// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "background/background.h"

#include <algorithm>
#include <cmath>

namespace
{
// What a link could carry while the background runs alone: the largest flow, two and a half times.
constexpr double kWarmUpBytes = 25e6;
// RFC 6928.
constexpr double kFirstWindow = 10;
// An exchange that sends nothing while this many flows begin will not go on.
constexpr size_t kStuckAfter = 1 << 14;

/// As many bytes in flight as a worker may have. It always heeds marks.
PaceOptions
FlowPace(const PaceOptions& workers)
{
    PaceOptions pace = workers;
    const uint32_t bytes = workers.window * FrameBytes(Kind::FEATURE);
    pace.window = std::max(1U, bytes / kFullFrameBytes);
    pace.group = 1;
    pace.congestion_control = true;
    pace.round_trip = 2 * workers.round_trip;
    pace.first_window = pace.safe_window = kFirstWindow;
    pace.segment = 1;
    return pace;
}
} // namespace

Background::Background(const BackgroundOptions& options,
                       const FlowSizes& sizes,
                       const LinkOptions& link,
                       const PaceOptions& workers_pace,
                       Over over)
    : options_(options),
      sizes_(sizes),
      link_(link),
      pace_(FlowPace(workers_pace)),
      over_(std::move(over)),
      draw_(options.seed)
{
}

void
Background::Attach(Link& up, Link& down)
{
    up_.push_back(&up);
    down_.push_back(&down);
}

Receiver&
Background::BeforeSwitch(Receiver& inner)
{
    gates_.push_back(std::make_unique<Gate<&Background::Forward>>(*this, inner));
    return *gates_.back();
}

Receiver&
Background::BeforeHost(Receiver& inner)
{
    gates_.push_back(std::make_unique<Gate<&Background::Arrive>>(*this, inner));
    return *gates_.back();
}

Picoseconds
Background::WarmUp() const
{
    return link_.TimeOf(kWarmUpBytes);
}

void
Background::Start(Picoseconds now)
{
    if (up_.size() > 1)
    {
        Set(now + Gap());
    }
}

void
Background::Ring(Picoseconds now)
{
    ended_ = now;
    if (over_() || Stuck())
    {
        return;
    }
    Begin(now);
    Set(now + Gap());
}

void
Background::Begin(Picoseconds now)
{
    const auto hosts = static_cast<double>(up_.size());
    Flow::Drawn drawn{};
    drawn.number = static_cast<uint32_t>(flows_.size());
    drawn.from = static_cast<uint32_t>(Draw() * hosts);
    drawn.to = static_cast<uint32_t>(Draw() * (hosts - 1));
    drawn.to += drawn.to >= drawn.from ? 1 : 0;
    drawn.bytes = sizes_.At(Draw());
    flows_.push_back(std::make_unique<Flow>(drawn, pace_));
    flows_.back()->Attach(*up_[drawn.from]);
    flows_.back()->Start(now);
}

bool
Background::Stuck()
{
    if (flows_.size() % kStuckAfter != 0)
    {
        return false;
    }
    uint64_t frames = 0;
    for (size_t host = 0; host < up_.size(); ++host)
    {
        frames += up_[host]->Sent().frames + down_[host]->Sent().frames;
    }
    const bool stuck = frames == frames_before_ && !flows_.empty() && frames != 0;
    frames_before_ = frames;
    return stuck;
}

double
Background::Draw()
{
    constexpr int kDoubleBits = 53;
    return std::ldexp(static_cast<double>(draw_() >> (64 - kDoubleBits)), -kDoubleBits);
}

Picoseconds
Background::Gap()
{
    const double seconds_of_one = link_.TimeOf(sizes_.Mean()) / kPicosecondsPerSecond;
    const double per_second = options_.load * static_cast<double>(up_.size()) / seconds_of_one;
    return std::llround(-std::log1p(-Draw()) / per_second * kPicosecondsPerSecond);
}

void
Background::Forward(const Packet& packet, uint32_t, Picoseconds now)
{
    const Flow::Drawn& flow = flows_[packet.group]->What();
    down_[packet.kind == Kind::BACKGROUND ? flow.to : flow.from]->Send(packet, now);
}

void
Background::Arrive(const Packet& packet, uint32_t port, Picoseconds now)
{
    Flow& flow = *flows_[packet.group];
    if (packet.kind == Kind::BACKGROUND)
    {
        flow.Take(packet, *up_[port], now);
    }
    else
    {
        flow.Receive(packet, port, now);
    }
}
