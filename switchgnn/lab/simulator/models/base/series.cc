// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "base/series.h"

namespace
{
constexpr size_t kMost = 1024;
constexpr Picoseconds kFirstDistance = 1'000'000;
} // namespace

Series::Series(Look look, Over over)
    : look_(std::move(look)),
      over_(std::move(over)),
      distance_(kFirstDistance)
{
}

void
Series::Start(Picoseconds now)
{
    Ring(now);
}

void
Series::Ring(Picoseconds now)
{
    if (over_())
    {
        return;
    }
    samples_.push_back(look_(now));
    if (samples_.size() > 1 && ns3::Simulator::IsFinished())
    {
        // Nothing else will happen: looking on would hide it.
        return;
    }
    if (samples_.size() == kMost)
    {
        for (size_t i = 0; i < kMost / 2; ++i)
        {
            samples_[i] = samples_[2 * i];
        }
        samples_.resize(kMost / 2);
        distance_ *= 2;
        Set(samples_.back().at + distance_);
        return;
    }
    Set(now + distance_);
}
