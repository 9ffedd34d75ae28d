// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// One direction of a link: a queue, a rate, a delay.
#ifndef SWITCHGNN_LINK_H
#define SWITCHGNN_LINK_H

#include "base/alarm.h"
#include "base/ring_buffer.h"
#include "network/packet.h"
#include "network/queue_meter.h"
#include "network/trace.h"

#include <array>
#include <limits>
#include <string>

struct LinkOptions
{
    double bits_per_second;
    Picoseconds delay;
    /// What a frame occupies on the link beside its bytes: preamble, checksum and gap.
    uint32_t overhead_bytes = 0;
    double buffer_bytes = std::numeric_limits<double>::infinity();
    /// A packet that finds more than this is marked.
    double ecn_bytes = std::numeric_limits<double>::infinity();
    /// Whether a full queue loses a packet, or else ends the simulation.
    bool loses = false;

    Picoseconds TimeOf(double bytes) const;
    double BytesIn(Picoseconds time) const;
};

/// The end of a link.
class Receiver
{
  public:
    virtual ~Receiver() = default;
    /// A packet has arrived whole.
    virtual void Receive(const Packet& packet, uint32_t port, Picoseconds now) = 0;

    /// What messages call it, as the end of the link with this number.
    virtual std::string Name(uint32_t port) const
    {
        return "worker " + std::to_string(port);
    }
};

/// First in, first out. When a frame leaves follows from the one before it, so the only event is
/// its arrival, and only the next arrival is pending.
class Link : public Alarm
{
  public:
    /// Frames and bytes of one kind.
    struct Count
    {
        uint64_t frames = 0;
        uint64_t bytes = 0;
    };

    /// meter: of the switch's queues; null on the way up.
    Link(const LinkOptions& options,
         Receiver& end,
         uint32_t port,
         QueueMeter* meter,
         Trace& trace);

    void Send(Packet packet, Picoseconds now);

    const Count& Sent(Kind kind) const
    {
        return sent_[static_cast<size_t>(kind)];
    }

    /// Everything of the exchange; the background does not count.
    Count Sent() const;

    /// Packets of the exchange that were marked; below, those that were lost.
    uint64_t Marked() const
    {
        return marked_;
    }

    uint64_t Lost() const
    {
        return lost_;
    }

    uint64_t BackgroundMarked() const
    {
        return background_marked_;
    }

    const Count& BackgroundLost() const
    {
        return background_lost_;
    }

  private:
    struct Flying
    {
        Picoseconds at;
        Packet packet;
    };

    void Ring(Picoseconds now) override;
    void Lose(const Packet& packet, double waiting);
    void Mark(Packet& packet, double waiting);
    static bool Markable(const Packet& packet);
    Picoseconds TimeOf(const Packet& packet) const;

    LinkOptions options_;
    Receiver& end_;
    uint32_t port_;
    QueueMeter* meter_;
    Trace& trace_;
    std::array<Picoseconds, kKinds> time_of_;
    std::array<Count, kKinds> sent_{};
    uint64_t marked_ = 0;
    uint64_t lost_ = 0;
    uint64_t background_marked_ = 0;
    Count background_lost_;
    Picoseconds free_at_ = 0;
    RingBuffer<Flying> flying_;
};

#endif
