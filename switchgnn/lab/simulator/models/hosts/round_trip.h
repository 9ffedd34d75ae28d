// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// How long an answer may take, as host/round_trip.py has it (RFC 6298).
#ifndef SWITCHGNN_ROUND_TRIP_H
#define SWITCHGNN_ROUND_TRIP_H

#include "base/units.h"

#include <algorithm>
#include <cmath>

/// Every answer carries the time of its question, so answers to repeated ones are measured, too.
class RoundTrip
{
  public:
    /// guess: before the first measurement. shortest: time-out.
    RoundTrip(Picoseconds guess, Picoseconds shortest)
        : guess_(guess),
          shortest_(shortest)
    {
    }

    void Measured(Picoseconds round_trip)
    {
        const auto sample = static_cast<double>(round_trip);
        deviation_ = measured_ ? deviation_ + (std::abs(smoothed_ - sample) - deviation_) / 4
                               : sample / 2;
        smoothed_ = measured_ ? smoothed_ + (sample - smoothed_) / kSmoothing : sample;
        measured_ = true;
    }

    Picoseconds Smoothed() const
    {
        return measured_ ? static_cast<Picoseconds>(smoothed_) : guess_;
    }

    /// The time-out after a number of attempts: it doubles with each, within bounds.
    /// bounded: also from below.
    Picoseconds BackedOff(int attempts, bool bounded = true) const
    {
        const double first = smoothed_ + 4 * deviation_;
        const Picoseconds longest = kLongest * shortest_;
        if (!measured_ || (bounded && first < static_cast<double>(shortest_)))
        {
            return std::min(longest, shortest_ << std::min(attempts, kMostDoublings));
        }
        return std::min<double>(longest, std::ldexp(first, std::min(attempts, kMostDoublings)));
    }

  private:
    static constexpr double kSmoothing = 8;
    static constexpr int kMostDoublings = 10;
    // As many times the shortest as there.
    static constexpr Picoseconds kLongest = 250;

    Picoseconds guess_;
    Picoseconds shortest_;
    bool measured_ = false;
    double smoothed_ = 0;
    double deviation_ = 0;
};

#endif
