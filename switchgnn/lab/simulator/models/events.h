// Units, errors, a queue, events that are reused without allocation, and samples.
#pragma once

#include "ns3/event-impl.h"
#include "ns3/nstime.h"
#include "ns3/simulator.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <stdexcept>
#include <utility>
#include <vector>

/// Time since the start; 188 bytes at 100 Gbit/s are 15,040 of them.
using Picoseconds = int64_t;

constexpr double kPicosecondsPerSecond = 1e12;

/// Stops a simulation; the message is for the user.
class SimulationError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// An event of ns-3 that is reused.
class Alarm : public ns3::EventImpl {
  public:
    /// Whether it was set since it last rang.
    bool Pending() const { return pending_; }

    /// Ring at a time that is not past, in addition to times set before.
    void Set(Picoseconds at) {
        pending_ = true;
        const ns3::Time wait = ns3::TimeStep(at) - ns3::Simulator::Now();
        // The simulator gives up the reference that it is given here.
        ns3::Simulator::Schedule(wait, ns3::Ptr<ns3::EventImpl>(this));
    }

  protected:
    virtual void Ring(Picoseconds now) = 0;

  private:
    void Notify() override {
        pending_ = false;
        Ring(ns3::Simulator::Now().GetTimeStep());
    }

    bool pending_ = false;
};

/// A time-out that is postponed often. Postponing costs no event: it compares times when it rings.
class Timer : public Alarm {
  public:
    using Call = std::function<void(Picoseconds now)>;

    explicit Timer(Call call) : call_(std::move(call)) {}
    bool On() const { return on_; }
    Picoseconds Due() const { return due_; }

    /// Call at that time instead of the one set before.
    void SetTo(Picoseconds at) {
        on_ = true;
        due_ = at;
        if (!ringing_ || at < rings_at_) RingAt(at);
    }

    void Stop() { on_ = false; }

  private:
    void RingAt(Picoseconds at) {
        ringing_ = true;
        rings_at_ = at;
        Set(at);
    }

    void Ring(Picoseconds now) override {
        if (!ringing_ || now != rings_at_) {
            return;  // This ring was set before the time was brought forward.
        }
        ringing_ = false;
        if (!on_) return;
        if (now < due_) {
            RingAt(due_);
            return;
        }
        on_ = false;
        call_(now);
    }

    Call call_;
    bool on_ = false;
    Picoseconds due_ = 0;
    bool ringing_ = false;
    Picoseconds rings_at_ = 0;
};

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
        if (over_()) return;
        samples_.push_back(look_(now));
        if (samples_.size() > 1 && ns3::Simulator::IsFinished()) {
            // No other event is left, and a further sample would hide that.
            return;
        }
        if (samples_.size() == kMost) {
            for (size_t i = 0; i < kMost / 2; ++i) samples_[i] = samples_[2 * i];
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
