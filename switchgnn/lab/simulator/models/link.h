// Packets as far as a simulation needs them, one direction of a link, and what is measured on
// links.
#pragma once

#include "events.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>
#include <string>

enum class Kind : uint8_t {
    FEATURE = 1,
    SUM = 2,
    DONE = 3,
    ADVANCE = 4,
    ACK = 6,
    RECALL = 7,
    MISSING = 8,
    NOTICE = 10,
    // Of flows in the background, which the protocol does not know.
    BACKGROUND = 11,
    BACKGROUND_ACK = 12,
};

/// Rows of a frame at most, and the bytes that name those of a bundle of sums.
constexpr uint32_t kMostRows = 8;
constexpr uint16_t kPlacesBytes = 16;
/// Kinds of the exchange, and all.
constexpr int kExchangeKinds = 11;
constexpr int kKinds = 13;
/// A full frame of the background.
constexpr uint32_t kFullFrameBytes = 1500;
constexpr uint64_t kShortestFrame = 60;

/// A packet. Lanes are not carried: nothing here depends on them.
struct Packet {
    Kind kind;
    bool ecn = false;
    /// FEATURE: an ACK is wanted. SUM: it is one, of the group.
    bool echo = false;
    /// ACK between hosts: a bit for each frame of its run that has not arrived.
    uint8_t missing = 0;
    /// The worker that sent it, or, if a switch made it, the worker that gets it.
    uint16_t worker = 0;
    /// FEATURE, SUM: contributions in it. ACK, and FEATURE between hosts: frames it confirms.
    /// NOTICE: data packets that came marked. BACKGROUND: bytes.
    uint16_t count = 1;
    /// FEATURE: its index among all packets. SUM, and FEATURE that overflowed: the row of the
    /// destination. RECALL, MISSING: that row. Between hosts: the receiver. BACKGROUND and its
    /// ACK: the index in its flow.
    uint32_t id = 0;
    /// FEATURE, ACK, SUM: the group. Between hosts: the frame's index among those of its sender, and
    /// for ACK and RECALL that of the last frame of the run. BACKGROUND and its ACK: the flow.
    uint32_t group = 0;
    /// The unit that it belongs to, or the opening; see Schedule.
    uint32_t turn = 0;
    /// FEATURE, ACK, SUM: when the FEATURE was sent.
    Picoseconds asked = 0;
    /// FEATURE, SUM: of the frame. 0: those of its kind.
    uint16_t bytes = 0;
    /// Between hosts: switches only forward it.
    bool between_hosts = false;
    /// SUM: the rows that it carries besides `id`.
    uint8_t others = 0;
    std::array<uint32_t, kMostRows - 1> other;
};

/// Whether it has rows of the exchange.
constexpr bool IsData(Kind kind) { return kind == Kind::FEATURE || kind == Kind::SUM; }

/// Bytes of a frame, as the emulation counts them; where frames of a kind differ, of most of them.
constexpr uint32_t FrameBytes(Kind kind) {
    if (IsData(kind)) return 188;
    if (kind == Kind::BACKGROUND) return kFullFrameBytes;
    return kind == Kind::DONE || kind == Kind::ADVANCE ? 88 : kShortestFrame;
}

constexpr uint32_t FrameBytes(const Packet& packet) {
    if (packet.bytes != 0) return packet.bytes;
    return packet.kind == Kind::BACKGROUND ? packet.count : FrameBytes(packet.kind);
}

/// Whether a full queue loses it. Control packets are small, and have room beyond it.
constexpr bool CanBeLost(Kind kind) { return IsData(kind) || kind == Kind::BACKGROUND; }

/// Whether it overtakes frames with numbers, as in p4src/loop.p4.
constexpr bool IsUrgent(const Packet& packet) {
    return !packet.between_hosts && static_cast<int>(packet.kind) < kExchangeKinds &&
           !CanBeLost(packet.kind);
}

constexpr double kBitsPerByte = 8;

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
        maxima.all = std::max(maxima.all, sum_ - busy_ * now);
        maxima.port = std::max(maxima.port, free - now);
    }

    /// Time that all queues together take to send, if one after another.
    Picoseconds Total(Picoseconds now) {
        Retire(now);
        return sum_ - busy_ * now;
    }

    /// The longest that they were, all together and a single one.
    struct Maxima {
        Picoseconds all = 0;
        Picoseconds port = 0;
    };

    Maxima maxima;

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
};

struct Arrival {
    Picoseconds at;
    /// Whether it arrives at the switch, or else at the worker.
    bool at_switch;
    /// The worker at the other end of the link, or at this one; from the number of workers on a
    /// link between switches, see Fabric.
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
            arrivals.push_back({at, at_switch || worker >= workers_, worker, packet});
        }
    }

    std::vector<Arrival> arrivals;

  private:
    bool on_;
    uint32_t workers_;
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

    Picoseconds TimeOf(double bytes) const {
        return std::llround(bytes * kBitsPerByte * kPicosecondsPerSecond / bits_per_second);
    }

    double BytesIn(Picoseconds time) const {
        return static_cast<double>(time) * bits_per_second / kBitsPerByte / kPicosecondsPerSecond;
    }
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
class Link : public Delayed<Packet> {
  public:
    /// Frames and bytes of one kind.
    struct Count {
        uint64_t frames = 0;
        uint64_t bytes = 0;

        void operator+=(const Count& other) {
            frames += other.frames;
            bytes += other.bytes;
        }
    };

    /// meter: of the switch's queues; null on the way up.
    Link(const LinkOptions& options, Receiver& end, uint32_t port, QueueMeter* meter, Trace& trace)
        : options_(options), end_(end), port_(port), meter_(meter), trace_(trace) {
        for (int kind = 0; kind < kKinds; ++kind) {
            const uint32_t bytes = FrameBytes(static_cast<Kind>(kind)) + options.overhead_bytes;
            time_of_[kind] = options.TimeOf(bytes);
        }
    }

    /// Let other receivers take the packets between hosts, or the background's.
    void TakeBetweenHosts(Receiver& end) { between_hosts_end_ = &end; }
    void TakeBackground(Receiver& end) { background_end_ = &end; }

    void Send(Packet packet, Picoseconds now) {
        Begin(now);
        free_at_ = std::max(free_at_, now);
        const bool urgent = IsUrgent(packet);
        Queue& queue = queues_[urgent];
        const Picoseconds ahead = queue.time + (urgent == urgent_ ? free_at_ - now : 0);
        const double waiting = options_.BytesIn(ahead);
        const uint32_t bytes = FrameBytes(packet);
        if (waiting + bytes > options_.buffer_bytes && CanBeLost(packet.kind)) {
            Lose(packet, waiting);
            if (packet.kind != Kind::SUM || !packet.echo) return;
            // In place of the answer to the sender, which would ask again.
            packet = {.kind = Kind::ACK, .group = packet.group, .turn = packet.turn,
                      .asked = packet.asked};
            Send(packet, now);
            return;
        }
        Mark(packet, waiting);
        queue.packets.push_back(packet);
        queue.time += TimeOf(packet);
        if (meter_) meter_->Busy(port_, free_at_ + queues_[0].time + queues_[1].time, now);
        sent_[static_cast<size_t>(packet.kind)] += {1, bytes};
        Begin(now);
    }

    const Count& Sent(Kind kind) const { return sent_[static_cast<size_t>(kind)]; }
    /// Everything of the exchange; the background does not count.
    Count Sent() const {
        Count total;
        for (int kind = 0; kind < kExchangeKinds; ++kind) total += sent_[kind];
        return total;
    }

    /// Bytes of the exchange without those that wait.
    double BytesThrough(Picoseconds now) const {
        const Picoseconds left = free_at_ + queues_[0].time + queues_[1].time - now;
        return static_cast<double>(Sent().bytes) - options_.BytesIn(std::max<Picoseconds>(0, left));
    }

    /// Packets of the exchange that were marked, and that were lost; below, those of the background.
    uint64_t marked = 0;
    uint64_t lost = 0;
    uint64_t background_marked = 0;
    Count background_lost;

  private:

    /// What has not begun, and how long it takes.
    struct Queue {
        std::deque<Packet> packets;
        Picoseconds time = 0;
    };

    void Ring(Picoseconds now) override {
        Delayed::Ring(now);
        Begin(now);
    }

    /// A packet arrives.
    void Out(const Packet& packet, Picoseconds now) override {
        trace_.Take(now, meter_ == nullptr, port_, packet);
        EndOf(packet).Receive(packet, port_, now);
    }

    Receiver& EndOf(const Packet& packet) {
        if (packet.kind >= Kind::BACKGROUND) return *background_end_;
        return packet.between_hosts ? *between_hosts_end_ : end_;
    }

    /// Let all frames begin whose turn has come.
    void Begin(Picoseconds now) {
        while (free_at_ <= now && !(queues_[0].packets.empty() && queues_[1].packets.empty())) {
            urgent_ = !queues_[1].packets.empty();
            Queue& queue = queues_[urgent_];
            const Packet packet = queue.packets.front();
            queue.packets.pop_front();
            const Picoseconds time = TimeOf(packet);
            queue.time -= time;
            free_at_ += time;
            Delay(packet, free_at_ + options_.delay);
        }
    }

    void Lose(const Packet& packet, double waiting) {
        if (!options_.loses) {
            std::ostringstream message;
            message << "The queue to " << end_.Name(port_) << " is full: a packet found "
                    << std::llround(waiting) << " bytes waiting, and " << options_.buffer_bytes
                    << " fit. Packets lost there are not sent again in this model: give a larger "
                       "buffer.";
            throw SimulationError(message.str());
        }
        if (packet.kind == Kind::BACKGROUND) {
            background_lost += {1, packet.count};
        } else {
            ++lost;
        }
    }

    void Mark(Packet& packet, double waiting) {
        if (waiting > options_.ecn_bytes && Markable(packet)) {
            packet.ecn = true;
            ++(packet.kind == Kind::BACKGROUND ? background_marked : marked);
        }
    }

    /// Acknowledgements between hosts are not ECN-capable: they say whether their frames were
    /// marked.
    static bool Markable(const Packet& packet) {
        return packet.between_hosts ? packet.kind == Kind::FEATURE
                                    : packet.kind != Kind::BACKGROUND_ACK;
    }

    Picoseconds TimeOf(const Packet& packet) const {
        const uint32_t bytes = FrameBytes(packet);
        return bytes == FrameBytes(packet.kind) ? time_of_[static_cast<size_t>(packet.kind)]
                                                : options_.TimeOf(bytes + options_.overhead_bytes);
    }

    LinkOptions options_;
    Receiver& end_;
    Receiver* between_hosts_end_ = &end_;
    Receiver* background_end_ = nullptr;
    uint32_t port_;
    QueueMeter* meter_;
    Trace& trace_;
    std::array<Picoseconds, kKinds> time_of_;
    std::array<Count, kKinds> sent_{};
    // Of frames with numbers, and of packets without.
    std::array<Queue, 2> queues_;
    // Of the frame that has begun last.
    bool urgent_ = false;
    Picoseconds free_at_ = 0;
};
