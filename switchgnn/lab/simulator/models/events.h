// Units, errors, the queue of events, alarms that are set again without allocation, and samples.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <queue>
#include <stdexcept>
#include <utility>
#include <vector>

/// Time since the start; 188 bytes at 100 Gbit/s are 15,040 of them.
using Picoseconds = int64_t;

constexpr double kPicosecondsPerSecond = 1e12;
constexpr Picoseconds kNever = std::numeric_limits<Picoseconds>::max();
/// Before all times, so that all differences with it are defined.
constexpr Picoseconds kLongAgo = -kNever / 2;

/// The sum of a number of each item: of a member, or what a function returns.
template <typename Items, typename Number>
uint64_t Total(const Items& items, Number number) {
    uint64_t total = 0;
    for (const auto& item : items) total += std::invoke(number, item);
    return total;
}

/// Stops a simulation; the message is for the user.
class SimulationError : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

class Alarm;

/// The time, and the alarms to come. Those of one time ring in the order in which they were set, so
/// a simulation takes the same course each time it runs.
class Events {
  public:
    Picoseconds Now() const { return now_; }
    /// How many alarms have rung.
    uint64_t Count() const { return count_; }
    bool Empty() const { return coming_.empty(); }
    /// Let an alarm ring at a time that is not past. It must live until then.
    void Add(Picoseconds at, Alarm& alarm) { coming_.push({at, added_++, &alarm}); }
    /// Go from alarm to alarm until none is left.
    void Run();

  private:
    struct Coming {
        Picoseconds at;
        uint64_t number;
        Alarm* alarm;
        auto operator<=>(const Coming&) const = default;
    };

    std::priority_queue<Coming, std::vector<Coming>, std::greater<>> coming_;
    Picoseconds now_ = 0;
    uint64_t added_ = 0;
    uint64_t count_ = 0;
};

/// Those of the one simulation that a process runs.
inline Events events;

/// An event that is reused.
class Alarm {
  public:
    Alarm() = default;
    Alarm(const Alarm&) = delete;
    virtual ~Alarm() = default;

    /// Whether it was set since it last rang.
    bool Pending() const { return pending_; }

    /// Ring at a time that is not past, in addition to times set before.
    void Set(Picoseconds at) {
        pending_ = true;
        events.Add(at, *this);
    }

  protected:
    virtual void Ring(Picoseconds now) = 0;

  private:
    friend class Events;
    bool pending_ = false;
};

inline void Events::Run() {
    while (!Empty()) {
        const Coming next = coming_.top();
        coming_.pop();
        ++count_;
        now_ = next.at;
        next.alarm->pending_ = false;
        next.alarm->Ring(now_);
    }
}

/// Items that come out at later times, in the order of those times.
template <typename Item>
class Delayed : public Alarm {
  protected:
    virtual void Out(const Item& item, Picoseconds now) = 0;

    void Delay(const Item& item, Picoseconds at) {
        inside_.push_back({at, item});
        if (!Pending()) Set(inside_.front().at);
    }

    void Ring(Picoseconds now) override {
        while (!inside_.empty() && inside_.front().at <= now) {
            const Item item = inside_.front().item;
            inside_.pop_front();
            Out(item, now);
        }
        if (!inside_.empty() && !Pending()) Set(inside_.front().at);
    }

  private:
    struct Inside {
        Picoseconds at;
        Item item;
    };

    std::deque<Inside> inside_;
};

/// A time-out that is postponed often. Postponing costs no event: it compares times when it rings.
class Timer : public Alarm {
  public:
    using Call = std::function<void(Picoseconds now)>;

    explicit Timer(Call call) : call_(std::move(call)) {}
    bool On() const { return due_ != kNever; }
    Picoseconds Due() const { return due_; }

    /// Call at that time instead of the one set before.
    void SetTo(Picoseconds at) {
        due_ = at;
        if (at < rings_at_) RingAt(at);
    }

    void Stop() { due_ = kNever; }

  private:
    void RingAt(Picoseconds at) {
        rings_at_ = at;
        Set(at);
    }

    void Ring(Picoseconds now) override {
        // This ring was set before the time was brought forward.
        if (now != rings_at_) return;
        rings_at_ = kNever;
        if (!On()) return;
        if (now < due_) return RingAt(due_);
        Stop();
        call_(now);
    }

    Call call_;
    Picoseconds due_ = kNever;
    Picoseconds rings_at_ = kNever;
};

struct Sample {
    Picoseconds at;
    double queue_bytes;
    uint64_t slots;
    uint64_t sums;
    uint64_t overflowed;
    double link_bytes;
};

/// Samples at equal distances. When there are too many, every other one is dropped and the
/// distance doubles, as the length of the simulation is unknown.
class Series : public Alarm {
  public:
    using Look = std::function<Sample(Picoseconds now)>;
    using Over = std::function<bool()>;

    Series(Look look, Over over) : look_(std::move(look)), over_(std::move(over)) {}
    void Start(Picoseconds now) { Ring(now); }
    std::vector<Sample> samples;

  private:
    static constexpr size_t kMost = 1024;

    void Ring(Picoseconds now) override {
        if (over_()) return;
        samples.push_back(look_(now));
        // If no other event is left, a further sample would hide that.
        if (samples.size() > 1 && events.Empty()) return;
        if (samples.size() == kMost) {
            for (size_t i = 0; i < kMost / 2; ++i) samples[i] = samples[2 * i];
            samples.resize(kMost / 2);
            distance_ *= 2;
        }
        Set(samples.back().at + distance_);
    }

    Look look_;
    Over over_;
    Picoseconds distance_ = 1'000'000;
};
