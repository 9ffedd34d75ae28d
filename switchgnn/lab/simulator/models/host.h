// Time-outs, window and rate of a host, as in host/base/congestion.py and host/base/pace.py.
#pragma once

#include "link.h"

// The names and values are those of host/base/congestion.py.
constexpr double kBurst = 8;
constexpr double kRateGain = 1.25;

/// Round-trip estimates and time-outs, as in host/base/pace.py (RFC 6298). Every answer carries
/// the time of its question, so answers to repeated questions are measured, too.
class RoundTrip {
  public:
    /// guess: before the first measurement. shortest: time-out.
    RoundTrip(Picoseconds guess, Picoseconds shortest) : guess_(guess), shortest_(shortest) {}

    void Measured(Picoseconds round_trip) {
        const auto sample = static_cast<double>(round_trip);
        deviation_ =
            measured_ ? deviation_ + (std::abs(smoothed_ - sample) - deviation_) / 4 : sample / 2;
        smoothed_ = measured_ ? smoothed_ + (sample - smoothed_) / kSmoothing : sample;
        measured_ = true;
    }

    Picoseconds Smoothed() const {
        return measured_ ? static_cast<Picoseconds>(smoothed_) : guess_;
    }

    /// The time-out after a number of attempts: it doubles with each, within bounds.
    /// bounded: also from below.
    Picoseconds BackedOff(int attempts, bool bounded = true) const {
        const double first = smoothed_ + 4 * deviation_;
        const Picoseconds longest = kLongest * shortest_;
        if (!measured_ || (bounded && first < static_cast<double>(shortest_))) {
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

/// What a mark does, as CongestionRule in host/base/pace.py.
enum class Rule { DCTCP, PAPER, NONE };

struct PaceOptions {
    /// Features in flight at most.
    uint32_t window;
    /// Features that are acknowledged together.
    uint32_t group;
    /// How many groups beyond the first unacknowledged one may be sent.
    uint32_t groups_apart;
    Rule congestion;
    /// Of an empty network: the least that the rate is worked out with. Twice as much is the
    /// guess before the first measurement.
    Picoseconds round_trip;
    /// Whether packets can be lost; otherwise there are no time-outs.
    bool losses = false;
    Picoseconds shortest_timeout = 0;
    /// Packets of the first window, which doubles until packets come marked; by how many a window
    /// grows in a round trip; and the window that losses do not narrow.
    double first_window = std::numeric_limits<double>::infinity();
    double segment = 8;
    double safe_window = 16;
};

class Congestion {
  public:
    explicit Congestion(const PaceOptions& options)
        : trip(2 * options.round_trip, options.shortest_timeout),
          options_(options),
          window_(options.congestion != Rule::NONE
                      ? std::min<double>(options.window, options.first_window)
                      : options.window),
          opening_(window_ < options.window) {}

    /// How many features may be sent now.
    uint32_t Allowance(uint64_t in_flight, Picoseconds now) {
        const uint32_t room = Room(in_flight);
        if (!Paced() || room == 0) return room;
        const auto since = static_cast<double>(now - last_refill_);
        tokens_ = std::min(kBurst, tokens_ + since * FeaturesPerPicosecond());
        last_refill_ = now;
        return std::min(room, static_cast<uint32_t>(tokens_));
    }

    void Sent(uint32_t features) { tokens_ = std::max(0.0, tokens_ - features); }

    /// The time until the rate lets the next feature go; 0 when it is not the rate that limits.
    Picoseconds Wait(uint64_t in_flight) const {
        if (!Paced() || tokens_ >= 1 || Room(in_flight) == 0) return 0;
        // Rounded up, or a fraction of a token would be missing at that time.
        return static_cast<Picoseconds>(std::ceil((1 - tokens_) / FeaturesPerPicosecond())) + 1;
    }

    /// Take note of packets that came through; for each window of them adapt it.
    void Acknowledged(uint32_t features) {
        acknowledged_ += features;
        if (options_.congestion == Rule::NONE || acknowledged_ < window_) return;
        const double share = std::min(1.0, marked_ / acknowledged_);
        acknowledged_ = marked_ = 0;
        if (share > 0) {
            ++cuts;
            opening_ = false;
        }
        const double cut = window_ * (1 - share / 2);
        const double grown = cut + (opening_ ? window_ : options_.segment);
        window_ = std::clamp<double>(grown, options_.group, options_.window);
    }

    /// Take note of packets that came marked, or of sums that stand for them.
    void Marked(double features, Picoseconds now) {
        if (options_.congestion != Rule::PAPER || features <= 0) {
            marked_ += features;
            return;
        }
        acknowledged_ = 0;
        Halve(now);
    }

    /// Halve when packets did not arrive, unless the window is narrow.
    void Lost(Picoseconds now) {
        if (window_ > options_.safe_window) Halve(now);
    }

    RoundTrip trip;
    uint64_t cuts = 0;

  private:
    bool Paced() const { return options_.congestion != Rule::NONE && window_ < options_.window; }

    /// At most once per round trip.
    void Halve(Picoseconds now) {
        if (options_.congestion == Rule::NONE || now - last_cut_ < trip.Smoothed()) return;
        last_cut_ = now;
        ++cuts;
        opening_ = false;
        window_ = std::max<double>(options_.group, window_ / 2);
        acknowledged_ = marked_ = 0;
    }

    uint32_t Room(uint64_t in_flight) const {
        const auto window = static_cast<uint64_t>(window_);
        return static_cast<uint32_t>(window > in_flight ? window - in_flight : 0);
    }

    double FeaturesPerPicosecond() const {
        const Picoseconds round_trip = std::max(trip.Smoothed(), options_.round_trip);
        return kRateGain * window_ / static_cast<double>(round_trip);
    }

    PaceOptions options_;
    double window_;
    bool opening_;
    double acknowledged_ = 0;
    double marked_ = 0;
    Picoseconds last_cut_ = kLongAgo;
    double tokens_ = kBurst;
    Picoseconds last_refill_ = kLongAgo;
};

/// The window of hosts that send longer frames than features: as many bytes, moving as TCP's.
/// workers: the pace of those that send features; the size of a group stays.
inline PaceOptions PaceInFrames(const PaceOptions& workers, uint32_t frame_bytes) {
    // RFC 6928.
    constexpr double kTcpFirstWindow = 10;
    constexpr uint32_t kFeatureBytes = FrameBytes(Kind::FEATURE);
    PaceOptions pace = workers;
    const uint32_t bytes = workers.window * kFeatureBytes;
    // What has come stays in the window until the last frame of its group is acknowledged.
    pace.window = std::max(1U, bytes / frame_bytes) + workers.group - 1;
    pace.first_window = pace.safe_window =
        std::max(kTcpFirstWindow, workers.safe_window * kFeatureBytes / frame_bytes);
    pace.segment = 1;
    return pace;
}

/// An end of a link, with a window of its own.
class Host : public Receiver {
  public:
    Host(uint32_t worker, const PaceOptions& pace)
        : worker_(static_cast<uint16_t>(worker)), pace_(pace), congestion_(pace) {}

    /// Attach the link to the switch.
    void Attach(Link& up) { up_ = &up; }
    virtual void Start(Picoseconds now) = 0;
    uint32_t Worker() const { return worker_; }
    bool Finished() const { return finished_at_ != kNever; }
    Picoseconds FinishedAt() const { return finished_at_; }
    /// How often its window was narrowed.
    uint64_t Cuts() const { return congestion_.cuts; }

    /// Questions about missing packets.
    uint64_t recalled = 0;
    uint64_t sent_again = 0;
    /// Data packets that arrived a second time.
    uint64_t repeated = 0;

  protected:
    /// Send the next data packet.
    virtual void SendNext(Picoseconds now) = 0;
    /// Data packets that are left and need not wait for acknowledgements of others.
    virtual uint64_t Sendable() const = 0;
    virtual uint64_t InFlight() const = 0;

    /// Send what window and rate allow, now and whenever the rate allows more.
    void SendSome(Picoseconds now) {
        while (const uint64_t left = Sendable()) {
            const uint32_t allowed = congestion_.Allowance(InFlight(), now);
            const auto count = static_cast<uint32_t>(std::min<uint64_t>(left, allowed));
            if (count == 0) return PaceFrom(now);
            for (uint32_t i = 0; i < count; ++i) SendNext(now);
            congestion_.Sent(count);
        }
    }

    void Finish(Picoseconds now) { finished_at_ = now; }

    uint16_t worker_;
    PaceOptions pace_;
    Congestion congestion_;
    Link* up_ = nullptr;

  private:
    /// A higher rate brings the next packet forward.
    void PaceFrom(Picoseconds now) {
        const Picoseconds at = now + congestion_.Wait(InFlight());
        if (at > now && (!pacer_.On() || at < pacer_.Due())) pacer_.SetTo(at);
    }

    Timer pacer_{[this](Picoseconds now) { SendSome(now); }};
    Picoseconds finished_at_ = kNever;
};
