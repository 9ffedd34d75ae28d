// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// What is looked at again and again while a simulation runs.
#ifndef SWITCHGNN_SERIES_H
#define SWITCHGNN_SERIES_H

#include "base/alarm.h"

#include <functional>
#include <vector>

struct Sample
{
    Picoseconds at;
    double queue_bytes;
    uint64_t slots;
    uint64_t sums;
    uint64_t overflowed;
};

/// Samples at equal distances. When there are too many, every other one is forgotten and the
/// distance doubles; so nobody need know how long the simulation takes.
class Series : public Alarm
{
  public:
    using Look = std::function<Sample(Picoseconds now)>;
    using Over = std::function<bool()>;

    Series(Look look, Over over);

    void Start(Picoseconds now);

    const std::vector<Sample>& Samples() const
    {
        return samples_;
    }

  private:
    void Ring(Picoseconds now) override;

    Look look_;
    Over over_;
    Picoseconds distance_;
    std::vector<Sample> samples_;
};

#endif
