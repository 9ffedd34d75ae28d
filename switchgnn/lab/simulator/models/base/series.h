// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Lists of numbers as JSON, and samples taken while a simulation runs.
#pragma once

#include "base/events.h"

#include <functional>
#include <ostream>
#include <vector>

/// Write a further member of a JSON object: [a, b, ...] with one number of each item.
template <typename Items, typename Number>
void List(std::ostream& out, const char* name, const Items& items, Number number) {
    out << ",\n \"" << name << "\": [";
    const char* comma = "";
    for (const auto& item : items) {
        out << comma << number(item);
        comma = ", ";
    }
    out << "]";
}

struct Sample {
    Picoseconds at;
    double queue_bytes;
    uint64_t slots;
    uint64_t sums;
    uint64_t overflowed;
};

/// Samples at equal distances. When there are too many, every other one is dropped and the
/// distance doubles, as the length of the simulation is unknown.
class Series : public Alarm {
  public:
    using Look = std::function<Sample(Picoseconds now)>;
    using Over = std::function<bool()>;

    Series(Look look, Over over) : look_(std::move(look)), over_(std::move(over)) {}
    void Start(Picoseconds now) { Ring(now); }
    const std::vector<Sample>& Samples() const { return samples_; }

  private:
    static constexpr size_t kMost = 1024;

    void Ring(Picoseconds now) override {
        if (over_()) {
            return;
        }
        samples_.push_back(look_(now));
        if (samples_.size() > 1 && ns3::Simulator::IsFinished()) {
            // No other event is left, and a further sample would hide that.
            return;
        }
        if (samples_.size() == kMost) {
            for (size_t i = 0; i < kMost / 2; ++i) {
                samples_[i] = samples_[2 * i];
            }
            samples_.resize(kMost / 2);
            distance_ *= 2;
            Set(samples_.back().at + distance_);
            return;
        }
        Set(now + distance_);
    }

    Look look_;
    Over over_;
    Picoseconds distance_ = 1'000'000;
    std::vector<Sample> samples_;
};
