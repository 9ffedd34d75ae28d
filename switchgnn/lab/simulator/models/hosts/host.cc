// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "hosts/host.h"

#include <algorithm>
#include <cmath>

namespace {
// The names and values are those of host/congestion.py.
constexpr double kBurst = 8;
constexpr double kRateGain = 1.25;
}  // namespace

Congestion::Congestion(const PaceOptions& options)
    : options_(options),
      window_(options.congestion_control ? std::min<double>(options.window, options.first_window)
                                         : options.window),
      opening_(window_ < options.window),
      tokens_(kBurst),
      round_trip_(2 * options.round_trip, options.shortest_timeout) {}

bool Congestion::Paced() const {
    return options_.congestion_control && window_ < options_.window;
}

double Congestion::FeaturesPerPicosecond() const {
    return kRateGain * window_ / static_cast<double>(std::max(Smoothed(), options_.round_trip));
}

uint32_t Congestion::Room(uint64_t in_flight) const {
    const auto window = static_cast<uint64_t>(window_);
    return static_cast<uint32_t>(window > in_flight ? window - in_flight : 0);
}

uint32_t Congestion::Allowance(uint64_t in_flight, Picoseconds now) {
    const uint32_t room = Room(in_flight);
    if (!Paced() || room == 0) {
        return room;
    }
    const auto since = static_cast<double>(now - last_refill_);
    tokens_ = refilled_ ? std::min(kBurst, tokens_ + since * FeaturesPerPicosecond()) : kBurst;
    refilled_ = true;
    last_refill_ = now;
    return std::min(room, static_cast<uint32_t>(tokens_));
}

void Congestion::Sent(uint32_t features) {
    tokens_ = std::max(0.0, tokens_ - features);
}

Picoseconds Congestion::Wait(uint64_t in_flight) const {
    if (!Paced() || tokens_ >= 1 || Room(in_flight) == 0) {
        return 0;
    }
    // Rounded up, or a fraction of a token would be missing at that time.
    return static_cast<Picoseconds>(std::ceil((1 - tokens_) / FeaturesPerPicosecond())) + 1;
}

void Congestion::Acknowledged(uint32_t features) {
    acknowledged_ += features;
    if (!options_.congestion_control || acknowledged_ < window_) {
        return;
    }
    const double share = std::min(1.0, marked_ / acknowledged_);
    acknowledged_ = marked_ = 0;
    if (share > 0) {
        ++cuts_;
        opening_ = false;
    }
    const double cut = window_ * (1 - share / 2);
    const double grown = cut + (opening_ ? window_ : options_.segment);
    window_ = std::clamp<double>(grown, options_.group, options_.window);
}

void Congestion::Marked(double features) {
    marked_ += features;
}

void Congestion::Measured(Picoseconds round_trip) {
    round_trip_.Measured(round_trip);
}

void Congestion::Lost(Picoseconds now) {
    const bool soon = cut_ && now - last_cut_ < Smoothed();
    if (!options_.congestion_control || soon || window_ <= options_.safe_window) {
        return;
    }
    cut_ = true;
    last_cut_ = now;
    ++cuts_;
    opening_ = false;
    window_ = std::max<double>(options_.group, window_ / 2);
    acknowledged_ = marked_ = 0;
}

Host::Host(uint32_t worker, const PaceOptions& pace)
    : worker_(worker), pace_(pace), congestion_(pace), pacer_(ns3::Create<Pacer>(*this)) {}

void Host::SendSome(Picoseconds now) {
    while (const uint64_t left = Sendable()) {
        const uint32_t allowed = congestion_.Allowance(InFlight(), now);
        const auto count = static_cast<uint32_t>(std::min<uint64_t>(left, allowed));
        for (uint32_t i = 0; i < count; ++i) {
            SendNext(now);
        }
        congestion_.Sent(count);
        if (count == 0) {
            PaceFrom(now);
            return;
        }
    }
}

/// A higher rate brings the next packet forward.
void Host::PaceFrom(Picoseconds now) {
    const Picoseconds at = now + congestion_.Wait(InFlight());
    if (at > now && (!paced_ || at < paced_until_)) {
        paced_ = true;
        paced_until_ = at;
        pacer_->Set(at);
    }
}

/// After being brought forward it rings a second time, to no effect.
void Host::Paced(Picoseconds now) {
    if (paced_ && now == paced_until_) {
        paced_ = false;
        SendSome(now);
    }
}

void Host::Finish(Picoseconds now) {
    finished_ = true;
    finished_at_ = now;
}
