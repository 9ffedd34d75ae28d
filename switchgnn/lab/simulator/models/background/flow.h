// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// A flow of the background: some bytes from one host to another, both ends of it.
#ifndef SWITCHGNN_FLOW_H
#define SWITCHGNN_FLOW_H

#include "base/timer.h"
#include "hosts/host.h"

#include <deque>
#include <vector>

/// Full frames and one of the rest, each acknowledged by itself. What is not acknowledged in time
/// is sent again.
class Flow : public Host
{
  public:
    /// What a flow is drawn as.
    struct Drawn
    {
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

    const Drawn& What() const
    {
        return drawn_;
    }

    Picoseconds Began() const
    {
        return began_;
    }

    /// When the last frame that was missing arrived.
    Picoseconds Arrived() const
    {
        return arrived_at_;
    }

    /// Bytes of frames with what pads them, that have come, and that came a second time.
    uint64_t FrameBytes() const;

    uint64_t BytesArrived() const
    {
        return bytes_arrived_;
    }

    uint64_t BytesRepeated() const
    {
        return bytes_repeated_;
    }

    uint64_t BytesSent() const
    {
        return bytes_sent_;
    }

    /// What it takes in an empty network, without a window.
    Picoseconds Ideal(const LinkOptions& link) const;

  protected:
    void SendNext(Picoseconds now) override;

    uint64_t Sendable() const override
    {
        return frames_ - sent_;
    }

    uint64_t InFlight() const override
    {
        return sent_ - confirmed_;
    }

  private:
    struct Unconfirmed
    {
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

#endif
