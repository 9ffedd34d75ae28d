// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "hosts/congestion.h"

#include <algorithm>
#include <cmath>

namespace
{
// The names and values are those of host/congestion.py.
constexpr int kRecoverySteps = 5;
constexpr double kBurst = 8;
constexpr double kRateGain = 1.25;
} // namespace

Congestion::Congestion(const PaceOptions& options)
    : options_(options),
      window_(options.congestion_control ? std::min<double>(options.window, options.first_window)
                                         : options.window),
      target_(window_),
      tokens_(kBurst),
      round_trip_(2 * options.round_trip, options.shortest_timeout)
{
}

bool
Congestion::Paced() const
{
    return options_.congestion_control && window_ < options_.window;
}

double
Congestion::FeaturesPerPicosecond() const
{
    return kRateGain * window_ / static_cast<double>(std::max(Smoothed(), options_.round_trip));
}

uint32_t
Congestion::Room(uint64_t in_flight) const
{
    const auto window = static_cast<uint64_t>(window_);
    return static_cast<uint32_t>(window > in_flight ? window - in_flight : 0);
}

uint32_t
Congestion::Allowance(uint64_t in_flight, Picoseconds now)
{
    const uint32_t room = Room(in_flight);
    if (!Paced() || room == 0)
    {
        return room;
    }
    const auto since = static_cast<double>(now - last_refill_);
    tokens_ = refilled_ ? std::min(kBurst, tokens_ + since * FeaturesPerPicosecond()) : kBurst;
    refilled_ = true;
    last_refill_ = now;
    return std::min(room, static_cast<uint32_t>(tokens_));
}

void
Congestion::Sent(uint32_t features)
{
    tokens_ = std::max(0.0, tokens_ - features);
}

Picoseconds
Congestion::Wait(uint64_t in_flight) const
{
    if (!Paced() || tokens_ >= 1 || Room(in_flight) == 0)
    {
        return 0;
    }
    // Rounded up, or a token would be missing by a hair when the time has passed.
    return static_cast<Picoseconds>(std::ceil((1 - tokens_) / FeaturesPerPicosecond())) + 1;
}

void
Congestion::Acknowledged(uint32_t features)
{
    acknowledged_ += features;
    if (!options_.congestion_control || acknowledged_ < window_)
    {
        return;
    }
    acknowledged_ = 0;
    const double widest = options_.window;
    if (cuts_ == 0)
    {
        target_ = window_ = std::min(widest, 2 * window_);
        return;
    }
    if (++steps_ > kRecoverySteps)
    {
        target_ = std::min(widest, target_ + options_.segment);
    }
    window_ = (window_ + target_) / 2;
}

void
Congestion::Measured(Picoseconds round_trip)
{
    round_trip_.Measured(round_trip);
}

void
Congestion::SlowDown(Picoseconds now)
{
    if (!options_.congestion_control || (cut_ && now - last_cut_ < Smoothed()))
    {
        return;
    }
    cut_ = true;
    last_cut_ = now;
    ++cuts_;
    target_ = window_;
    window_ = std::max<double>(options_.group, window_ / 2);
    steps_ = 0;
    acknowledged_ = 0;
}

void
Congestion::Lost(Picoseconds now)
{
    if (window_ > options_.first_window)
    {
        SlowDown(now);
    }
}
