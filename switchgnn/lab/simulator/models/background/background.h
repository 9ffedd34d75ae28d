// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Flows between the same hosts, over the same links and queues as the exchange's packets.
#pragma once

#include "base/events.h"
#include "base/schedule.h"
#include "hosts/host.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <memory>
#include <ostream>
#include <random>
#include <vector>

struct BackgroundOptions {
    /// Share of the rate of each link that its flows take on average; 0: there is no background.
    double load;
    uint64_t seed;
};

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

    Flow(const Drawn& drawn, const PaceOptions& pace);

    void Start(Picoseconds now) override;
    /// An acknowledgement has arrived at the sender.
    void Receive(const Packet& packet, uint32_t port, Picoseconds now) override;
    /// A frame has arrived at the receiver, whose link to the switch is `up`.
    void Take(const Packet& packet, Link& up, Picoseconds now);

    const Drawn& What() const { return drawn_; }
    Picoseconds Began() const { return began_; }
    /// When the last missing frame arrived.
    Picoseconds Arrived() const { return arrived_at_; }
    /// Bytes of all frames, padded; then those that arrived, were repeated, and were sent.
    uint64_t FrameBytes() const;

    uint64_t BytesArrived() const { return bytes_arrived_; }
    uint64_t BytesRepeated() const { return bytes_repeated_; }
    uint64_t BytesSent() const { return bytes_sent_; }
    /// The time in an empty network, without a window.
    Picoseconds Ideal(const LinkOptions& link) const;

  protected:
    void SendNext(Picoseconds now) override;

    uint64_t Sendable() const override { return frames_ - sent_; }
    uint64_t InFlight() const override { return sent_ - confirmed_; }

  private:
    struct Unconfirmed {
        uint32_t place;
        Picoseconds sent_at;
    };

    void Send(uint32_t place, Picoseconds now);
    bool Confirm(uint32_t place);
    void Late(Picoseconds now);
    uint16_t BytesAt(uint64_t place) const;

    Drawn drawn_;
    uint64_t frames_;
    uint64_t sent_ = 0;
    uint64_t confirmed_ = 0;
    uint64_t bytes_sent_ = 0;
    Picoseconds began_ = 0;
    // In the order in which they were sent last.
    std::deque<Unconfirmed> unconfirmed_;
    ns3::Ptr<Timer> timer_;
    int attempts_ = 0;
    // At the receiver.
    std::vector<bool> here_;
    uint64_t missing_;
    uint64_t bytes_arrived_ = 0;
    uint64_t bytes_repeated_ = 0;
    Picoseconds arrived_at_ = 0;
};

/// Flows begin as a Poisson process between random hosts until the exchange is over; then the
/// running ones are simulated to their end.
class Background : public Alarm {
  public:
    /// Whether the exchange is over; called when a flow begins.
    using Over = std::function<bool()>;

    Background(const BackgroundOptions& options, const FlowSizes& sizes, const LinkOptions& link,
               const PaceOptions& workers_pace, Over over);

    /// Attach the links of the next host; their ends are those of BeforeSwitch and BeforeHost.
    void Attach(Link& up, Link& down);
    /// Return a receiver that takes the background's packets and forwards the others to `inner`.
    Receiver& BeforeSwitch(Receiver& inner);
    Receiver& BeforeHost(Receiver& inner);

    void Start(Picoseconds now);

    /// How long it runs before the exchange: long enough for its largest flows.
    Picoseconds WarmUp() const;

    /// Write the results as members of a JSON object.
    void Report(std::ostream& out, bool trace) const;

  private:
    /// Takes packets of the background, and forwards all others to a host or a switch.
    template <void (Background::*Take)(const Packet&, uint32_t, Picoseconds)>
    class Gate : public Receiver {
      public:
        Gate(Background& background, Receiver& inner) : background_(background), inner_(inner) {}

        void Receive(const Packet& packet, uint32_t port, Picoseconds now) override {
            if (packet.kind == Kind::BACKGROUND || packet.kind == Kind::BACKGROUND_ACK) {
                (background_.*Take)(packet, port, now);
            } else {
                inner_.Receive(packet, port, now);
            }
        }

      private:
        Background& background_;
        Receiver& inner_;
    };

    void Ring(Picoseconds now) override;
    void Begin(Picoseconds now);
    bool Stuck();
    void Forward(const Packet& packet, uint32_t port, Picoseconds now);
    void Arrive(const Packet& packet, uint32_t port, Picoseconds now);
    /// In [0, 1); portable, unlike the library's distributions.
    double Draw();
    Picoseconds Gap();
    std::vector<double> Slowdowns() const;
    void ReportFlows(std::ostream& out) const;

    BackgroundOptions options_;
    FlowSizes sizes_;
    LinkOptions link_;
    PaceOptions pace_;
    Over over_;
    std::mt19937_64 draw_;
    std::vector<std::unique_ptr<Receiver>> gates_;
    std::vector<Link*> up_;
    std::vector<Link*> down_;
    // Kept to the end, as events may refer to them.
    std::vector<std::unique_ptr<Flow>> flows_;
    Picoseconds ended_ = 0;
    uint64_t frames_before_ = 0;
};
