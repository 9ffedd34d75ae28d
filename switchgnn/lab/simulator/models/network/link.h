// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// One direction of a link (a queue, a rate, a delay), and what is measured on links.
#pragma once

#include "base/events.h"
#include "network/packet.h"

#include <array>
#include <functional>
#include <limits>
#include <queue>
#include <string>
#include <utility>
#include <vector>

/// The total length of all queues of the switch, now and at most. A queue is as long as the time
/// until its link is free. The sum over all busy links is kept; links that have become idle are
/// found in a heap, so nothing happens when a frame has left.
class QueueMeter {
  public:
    explicit QueueMeter(size_t ports) : free_(ports, 0) {}

    /// A port's link is busy until `free` from now on.
    void Busy(size_t port, Picoseconds free, Picoseconds now) {
        Retire(now);
        if (free_[port] <= now) {
            ++busy_;
            sum_ += free;
            idle_.push({free, port});
        } else {
            sum_ += free - free_[port];
        }
        free_[port] = free;
        largest_ = std::max(largest_, sum_ - busy_ * now);
        largest_port_ = std::max(largest_port_, free - now);
    }

    /// Time that all queues together take to send, if one after another.
    Picoseconds Total(Picoseconds now) {
        Retire(now);
        return sum_ - busy_ * now;
    }

    /// Reset the maxima.
    void Forget() {
        largest_ = 0;
        largest_port_ = 0;
    }

    Picoseconds Largest() const { return largest_; }
    Picoseconds LargestPort() const { return largest_port_; }

  private:
    using Idle = std::pair<Picoseconds, size_t>;

    void Retire(Picoseconds now) {
        while (!idle_.empty() && idle_.top().first <= now) {
            const size_t port = idle_.top().second;
            idle_.pop();
            if (free_[port] > now) {
                idle_.push({free_[port], port});
            } else {
                --busy_;
                sum_ -= free_[port];
            }
        }
    }

    std::vector<Picoseconds> free_;
    std::priority_queue<Idle, std::vector<Idle>, std::greater<>> idle_;
    Picoseconds sum_ = 0;
    int64_t busy_ = 0;
    Picoseconds largest_ = 0;
    Picoseconds largest_port_ = 0;
};

struct Arrival {
    Picoseconds at;
    /// Whether it arrives at the switch, or else at the worker.
    bool at_switch;
    /// The worker at the other end of the link, or at this one; from the number of workers on a
    /// link between switches, see LeafSpine.
    uint32_t worker;
    Packet packet;
};

class Trace {
  public:
    /// workers: ports from this number on are between switches.
    explicit Trace(bool on, uint32_t workers = std::numeric_limits<uint32_t>::max())
        : on_(on), workers_(workers) {}

    void Take(Picoseconds at, bool at_switch, uint32_t worker, const Packet& packet) {
        if (on_ && static_cast<int>(packet.kind) < kExchangeKinds) {
            arrivals_.push_back({at, at_switch || worker >= workers_, worker, packet});
        }
    }

    const std::vector<Arrival>& Arrivals() const { return arrivals_; }

  private:
    bool on_;
    uint32_t workers_;
    std::vector<Arrival> arrivals_;
};

struct LinkOptions {
    double bits_per_second;
    Picoseconds delay;
    /// Preamble, checksum and gap of a frame.
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
class Receiver {
  public:
    virtual ~Receiver() = default;
    /// A packet has arrived whole.
    virtual void Receive(const Packet& packet, uint32_t port, Picoseconds now) = 0;

    /// Its name in messages, as the end of the link with this number.
    virtual std::string Name(uint32_t port) const { return "worker " + std::to_string(port); }
};

/// Two queues: packets without numbers overtake frames with numbers that have not begun, and each
/// queue is first in, first out. When a frame begins is worked out when the next packet is sent or
/// arrives, so that all that could overtake it are known. So the only event is its arrival, and
/// only the next arrival is pending.
class Link : public Alarm {
  public:
    /// Frames and bytes of one kind.
    struct Count {
        uint64_t frames = 0;
        uint64_t bytes = 0;
    };

    /// meter: of the switch's queues; null on the way up.
    Link(const LinkOptions& options, Receiver& end, uint32_t port, QueueMeter* meter, Trace& trace);

    void Send(Packet packet, Picoseconds now);

    const Count& Sent(Kind kind) const { return sent_[static_cast<size_t>(kind)]; }
    /// Everything of the exchange; the background does not count.
    Count Sent() const;

    /// Packets of the exchange that were marked; below, those that were lost.
    uint64_t Marked() const { return marked_; }
    uint64_t Lost() const { return lost_; }
    uint64_t BackgroundMarked() const { return background_marked_; }
    const Count& BackgroundLost() const { return background_lost_; }

  private:
    struct Flying {
        Picoseconds at;
        Packet packet;
    };

    /// What has not begun, and how long it takes.
    struct Queue {
        RingBuffer<Packet> packets;
        Picoseconds time = 0;
    };

    void Ring(Picoseconds now) override;
    /// Let all frames begin whose turn has come.
    void Begin(Picoseconds now);
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
    // Of frames with numbers, and of packets without.
    std::array<Queue, 2> queues_;
    // Of the frame that has begun last.
    bool urgent_ = false;
    Picoseconds free_at_ = 0;
    RingBuffer<Flying> flying_;
};
