// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Window and rate of one worker, as host/congestion.py and host/round_trip.py have them.
#ifndef SWITCHGNN_CONGESTION_H
#define SWITCHGNN_CONGESTION_H

#include "base/units.h"
#include "hosts/round_trip.h"

#include <limits>

struct PaceOptions
{
    /// Features in flight at most.
    uint32_t window;
    /// Features that are acknowledged together.
    uint32_t group;
    /// How many groups beyond the first unacknowledged one may be sent.
    uint32_t groups_apart;
    bool congestion_control;
    /// Of an empty network: the least that the rate is worked out with. Twice as much is the
    /// guess before the first measurement.
    Picoseconds round_trip;
    /// Whether packets can be lost; nobody keeps time-outs otherwise.
    bool losses = false;
    Picoseconds shortest_timeout = 0;
    /// Packets of the first window, which doubles until packets come marked; by how many a window
    /// grows in a round trip; and the window that losses do not narrow.
    double first_window = std::numeric_limits<double>::infinity();
    double segment = 8;
    double safe_window = 16;
};

class Congestion
{
  public:
    explicit Congestion(const PaceOptions& options);

    /// How many features may be sent now.
    uint32_t Allowance(uint64_t in_flight, Picoseconds now);
    void Sent(uint32_t features);
    /// The time until the rate lets the next feature go; 0 when it is not the rate that limits.
    Picoseconds Wait(uint64_t in_flight) const;
    /// Take note of packets that came through; for each window of them adapt it.
    void Acknowledged(uint32_t features);
    /// Take note of packets that came marked, or of sums that stand for them.
    void Marked(double features);
    void Measured(Picoseconds round_trip);
    /// Halve when packets did not arrive, unless the window is narrow.
    void Lost(Picoseconds now);

    Picoseconds Smoothed() const
    {
        return round_trip_.Smoothed();
    }

    const RoundTrip& Trip() const
    {
        return round_trip_;
    }

    uint64_t Cuts() const
    {
        return cuts_;
    }

  private:
    bool Paced() const;
    uint32_t Room(uint64_t in_flight) const;
    double FeaturesPerPicosecond() const;

    PaceOptions options_;
    double window_;
    bool opening_;
    uint64_t cuts_ = 0;
    double acknowledged_ = 0;
    double marked_ = 0;
    bool cut_ = false;
    Picoseconds last_cut_ = 0;
    double tokens_;
    bool refilled_ = false;
    Picoseconds last_refill_ = 0;
    RoundTrip round_trip_;
};

#endif
