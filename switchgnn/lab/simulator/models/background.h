// Flows between the same hosts, over the same links and queues as the exchange's packets.
#pragma once

#include "json.h"
#include "schedule.h"

#include <numeric>
#include <random>

// The capacity of a link while the background runs alone: two and a half times the largest flow.
constexpr double kWarmUpBytes = 25e6;
// An exchange that sends nothing while this many flows begin will not go on.
constexpr size_t kStuckAfter = 1 << 14;

/// As many bytes in flight as a worker may have. It always heeds marks.
PaceOptions FlowPace(PaceOptions pace) {
    pace.group = 1;
    pace.congestion = Rule::DCTCP;
    pace.round_trip *= 2;
    return PaceInFrames(pace, kFullFrameBytes);
}

constexpr double kHigh = 0.99;

/// Sizes of flows: a distribution that is linear between the points given in the arrays.
class FlowSizes {
  public:
    explicit FlowSizes(const Arrays& arrays)
        : bytes_(arrays.Get<double>("flow_bytes")), share_(arrays.Get<double>("flow_share")) {}

    double Mean() const {
        double mean = 0;
        for (size_t i = 1; i < bytes_.size(); ++i) {
            mean += (bytes_[i] + bytes_[i - 1]) / 2 * (share_[i] - share_[i - 1]);
        }
        return mean;
    }

    /// The size below which such a share of the flows is; at least a byte.
    uint64_t At(double share) const {
        const auto above = std::upper_bound(share_.begin() + 1, share_.end() - 1, share);
        const size_t i = above - share_.begin();
        const double inside = (share - share_[i - 1]) / (share_[i] - share_[i - 1]);
        const double bytes = bytes_[i - 1] + inside * (bytes_[i] - bytes_[i - 1]);
        return std::max<uint64_t>(1, std::llround(bytes));
    }

  private:
    std::span<const double> bytes_;
    std::span<const double> share_;
};

/// Both ends of a flow from one host to another: full frames and one with the rest, each
/// acknowledged separately. Frames that are not acknowledged in time are sent again.
class Flow : public Host {
  public:
    struct Drawn {
        uint32_t number;
        uint32_t from;
        uint32_t to;
        uint64_t bytes;
    };

    Flow(const Drawn& flow, const PaceOptions& pace) : Host(flow.from, pace), drawn(flow) {}

    void Start(Picoseconds now) override {
        began = now;
        SendSome(now);
    }

    /// An acknowledgement has arrived at the sender.
    void Receive(const Packet& packet, uint32_t, Picoseconds now) override {
        congestion_.trip.Measured(now - packet.asked);
        if (!Confirm(packet.id)) return;
        attempts_ = 0;
        congestion_.Marked(packet.ecn ? 1 : 0, now);
        congestion_.Acknowledged(1);
        if (++confirmed_ == frames_) {
            timer_.Stop();
            Finish(now);
            return;
        }
        SendSome(now);
    }

    /// A frame has arrived at the receiver, whose link to the switch is `up`.
    void Take(const Packet& packet, Link& up, Picoseconds now) {
        up.Send({.kind = Kind::BACKGROUND_ACK, .ecn = packet.ecn,
                 .worker = static_cast<uint16_t>(drawn.to), .id = packet.id,
                 .group = packet.group, .asked = packet.asked}, now);
        if (here_[packet.id]) {
            bytes_repeated += packet.count;
            return;
        }
        here_[packet.id] = true;
        bytes_arrived += packet.count;
        if (--missing_ == 0) arrived = now;
    }

    const Drawn drawn;
    Picoseconds began = 0;
    /// When the last missing frame arrived.
    Picoseconds arrived = 0;
    uint64_t bytes_sent = 0;
    uint64_t bytes_arrived = 0;
    uint64_t bytes_repeated = 0;

    /// Bytes of all frames, padded.
    uint64_t FrameBytes() const { return (frames_ - 1) * kFullFrameBytes + BytesAt(frames_ - 1); }

    /// The time in an empty network, without a window.
    /// Frame by frame up, and the first of them, which is the longest, once more down.
    Picoseconds Ideal(const LinkOptions& link) const {
        const auto overhead = static_cast<double>(link.overhead_bytes);
        const double all =
            static_cast<double>(FrameBytes()) + overhead * static_cast<double>(frames_);
        return link.TimeOf(all) + link.TimeOf(BytesAt(0) + overhead) + 2 * link.delay;
    }

  protected:
    void SendNext(Picoseconds now) override { Send(static_cast<uint32_t>(sent_++), now); }

    uint64_t Sendable() const override { return frames_ - sent_; }
    uint64_t InFlight() const override { return sent_ - confirmed_; }

  private:
    struct Unconfirmed {
        uint32_t index;
        Picoseconds sent_at;
    };

    void Send(uint32_t index, Picoseconds now) {
        const Packet packet{.kind = Kind::BACKGROUND, .worker = worker_, .count = BytesAt(index),
                            .id = index, .group = drawn.number, .asked = now};
        bytes_sent += packet.count;
        unconfirmed_.push_back({index, now});
        if (pace_.losses && !timer_.On()) {
            timer_.SetTo(now + congestion_.trip.BackedOff(attempts_));
        }
        up_->Send(packet, now);
    }

    /// Return whether it was unconfirmed. Mostly it is the first one.
    bool Confirm(uint32_t index) {
        const auto found = std::ranges::find(unconfirmed_, index, &Unconfirmed::index);
        if (found == unconfirmed_.end()) return false;
        unconfirmed_.erase(found);
        return true;
    }

    void Late(Picoseconds now) {
        const Picoseconds patience = congestion_.trip.BackedOff(attempts_);
        if (unconfirmed_.front().sent_at + patience <= now) {
            ++attempts_;
            congestion_.Lost(now);
        }
        // Frames sent again go to the end, so this looks at each once.
        for (size_t left = unconfirmed_.size(); left > 0; --left) {
            const Unconfirmed first = unconfirmed_.front();
            if (first.sent_at + patience > now) break;
            unconfirmed_.pop_front();
            Send(first.index, now);
        }
        const Picoseconds next = congestion_.trip.BackedOff(attempts_);
        timer_.SetTo(std::max(now + 1, unconfirmed_.front().sent_at + next));
    }

    uint16_t BytesAt(uint64_t index) const {
        const uint64_t rest = drawn.bytes - index * kFullFrameBytes;
        return static_cast<uint16_t>(std::clamp<uint64_t>(rest, kShortestFrame, kFullFrameBytes));
    }

    uint64_t frames_ = (drawn.bytes + kFullFrameBytes - 1) / kFullFrameBytes;
    uint64_t sent_ = 0;
    uint64_t confirmed_ = 0;
    // In the order in which they were sent last.
    std::deque<Unconfirmed> unconfirmed_;
    Timer timer_{[this](Picoseconds now) { Late(now); }};
    int attempts_ = 0;
    // At the receiver.
    std::vector<bool> here_ = std::vector<bool>(frames_);
    uint64_t missing_ = frames_;
};

/// Flows begin as a Poisson process between random hosts until the exchange is over; then the
/// running ones are simulated to their end.
class Background : public Alarm, public Receiver {
  public:
    /// Whether the exchange is over; called when a flow begins.
    using Over = std::function<bool()>;

    Background(const Options& options, const Arrays& arrays, Over over)
        : options_(options), sizes_(arrays), over_(std::move(over)) {}

    /// Attach the links of the next host.
    void Attach(Link& up, Link& down) {
        up_.push_back(&up);
        down_.push_back(&down);
        for (Link* link : {&up, &down}) link->TakeBackground(*this);
    }

    /// Take a packet of a flow: at the switch on the way up from its sender, or at the other host.
    void Receive(const Packet& packet, uint32_t port, Picoseconds now) override {
        Flow& flow = flows_[packet.group];
        const bool data = packet.kind == Kind::BACKGROUND;
        if (port == packet.worker) {
            down_[data ? flow.drawn.to : flow.drawn.from]->Send(packet, now);
        } else if (data) {
            flow.Take(packet, *up_[port], now);
        } else {
            flow.Receive(packet, port, now);
        }
    }

    void Start(Picoseconds now) {
        if (up_.size() > 1) Set(now + Gap());
    }

    /// How long it runs before the exchange: long enough for its largest flows.
    Picoseconds WarmUp() const { return options_.up.TimeOf(kWarmUpBytes); }

    /// Write the results: `BackgroundRun` of simulation.py.
    void Report(JsonObject&& report, bool trace) const {
        const std::vector<double> slowdowns = Slowdowns();
        const size_t count = slowdowns.size();
        const double sum = std::accumulate(slowdowns.begin(), slowdowns.end(), 0.0);
        const auto high = static_cast<size_t>(std::ceil(kHigh * static_cast<double>(count)));
        report.Put("flows", count);
        report.Put("flows_finished", Total(flows_, &Flow::Finished));
        report.Put("seconds", static_cast<double>(ended_) / kPicosecondsPerSecond);
        report.Put("bytes", Total(flows_, &Flow::FrameBytes));
        report.Put("bytes_sent", Total(flows_, &Flow::bytes_sent));
        report.Put("bytes_arrived", Total(flows_, &Flow::bytes_arrived));
        report.Put("bytes_repeated", Total(flows_, &Flow::bytes_repeated));
        report.Put("bytes_lost", Total(down_, [](Link* it) { return it->background_lost.bytes; }));
        report.Put("lost", Total(down_, [](Link* it) { return it->background_lost.frames; }));
        report.Put("marked", Total(down_, &Link::background_marked));
        report.Put("window_cuts", Total(flows_, &Flow::Cuts));
        report.Put("mean_slowdown", count ? sum / static_cast<double>(count) : 0);
        report.Put("high_slowdown", count ? slowdowns[high - 1] : 0);
        if (trace) {
            report.Objects("trace", flows_, [](JsonObject& one, const Flow& flow) {
                one.Put("began", flow.began);
                one.Put("arrived", flow.arrived);
                one.Put("sender", flow.drawn.from);
                one.Put("receiver", flow.drawn.to);
                one.Put("bytes", flow.drawn.bytes);
            });
        }
    }

  private:
    void Ring(Picoseconds now) override {
        ended_ = now;
        if (over_() || Stuck()) return;
        Begin(now);
        Set(now + Gap());
    }

    void Begin(Picoseconds now) {
        const auto hosts = static_cast<double>(up_.size());
        Flow::Drawn drawn{};
        drawn.number = static_cast<uint32_t>(flows_.size());
        drawn.from = static_cast<uint32_t>(Draw() * hosts);
        drawn.to = static_cast<uint32_t>(Draw() * (hosts - 1));
        drawn.to += drawn.to >= drawn.from ? 1 : 0;
        drawn.bytes = sizes_.At(Draw());
        Flow& flow = flows_.emplace_back(drawn, pace_);
        flow.Attach(*up_[drawn.from]);
        flow.Start(now);
    }

    bool Stuck() {
        if (flows_.size() % kStuckAfter != 0) return false;
        const auto sent = [](Link* link) { return link->Sent().frames; };
        const uint64_t frames = Total(up_, sent) + Total(down_, sent);
        const bool stuck = frames == frames_before_ && !flows_.empty() && frames != 0;
        frames_before_ = frames;
        return stuck;
    }

    /// In [0, 1); portable, unlike the library's distributions.
    double Draw() {
        constexpr int kDoubleBits = 53;
        return std::ldexp(static_cast<double>(draw_() >> (64 - kDoubleBits)), -kDoubleBits);
    }

    Picoseconds Gap() {
        const double seconds_of_one = options_.up.TimeOf(sizes_.Mean()) / kPicosecondsPerSecond;
        const double load = options_.background_load * static_cast<double>(up_.size());
        const double per_second = load / seconds_of_one;
        return std::llround(-std::log1p(-Draw()) / per_second * kPicosecondsPerSecond);
    }

    /// How many times as long as in an empty network, smallest first.
    std::vector<double> Slowdowns() const {
        std::vector<double> slowdowns;
        for (const Flow& flow : flows_) {
            const auto took = static_cast<double>(flow.arrived - flow.began);
            slowdowns.push_back(took / static_cast<double>(flow.Ideal(options_.up)));
        }
        std::sort(slowdowns.begin(), slowdowns.end());
        return slowdowns;
    }

    const Options& options_;
    FlowSizes sizes_;
    PaceOptions pace_ = FlowPace(options_.pace);
    Over over_;
    std::mt19937_64 draw_{options_.background_seed};
    std::vector<Link*> up_;
    std::vector<Link*> down_;
    // Kept to the end, as events may refer to them.
    std::deque<Flow> flows_;
    Picoseconds ended_ = 0;
    uint64_t frames_before_ = 0;
};
