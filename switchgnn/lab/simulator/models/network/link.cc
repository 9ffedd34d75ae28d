// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "network/link.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace {
constexpr double kBitsPerByte = 8;
}  // namespace

Picoseconds LinkOptions::TimeOf(double bytes) const {
    return std::llround(bytes * kBitsPerByte * kPicosecondsPerSecond / bits_per_second);
}

double LinkOptions::BytesIn(Picoseconds time) const {
    return static_cast<double>(time) * bits_per_second / kBitsPerByte / kPicosecondsPerSecond;
}

Link::Link(const LinkOptions& options, Receiver& end, uint32_t port, QueueMeter* meter,
           Trace& trace)
    : options_(options), end_(end), port_(port), meter_(meter), trace_(trace) {
    for (int kind = 0; kind < kKinds; ++kind) {
        const uint32_t bytes = FrameBytes(static_cast<Kind>(kind)) + options.overhead_bytes;
        time_of_[kind] = options.TimeOf(bytes);
    }
}

void Link::Send(Packet packet, Picoseconds now) {
    Begin(now);
    free_at_ = std::max(free_at_, now);
    const bool urgent = IsUrgent(packet);
    Queue& queue = queues_[urgent];
    const Picoseconds ahead = queue.time + (urgent == urgent_ ? free_at_ - now : 0);
    const double waiting = options_.BytesIn(ahead);
    const uint32_t bytes = FrameBytes(packet);
    if (waiting + bytes > options_.buffer_bytes && CanBeLost(packet.kind)) {
        Lose(packet, waiting);
        return;
    }
    Mark(packet, waiting);
    queue.packets.Push(packet);
    queue.time += TimeOf(packet);
    if (meter_) {
        meter_->Busy(port_, free_at_ + queues_[0].time + queues_[1].time, now);
    }
    Count& count = sent_[static_cast<size_t>(packet.kind)];
    ++count.frames;
    count.bytes += bytes;
    Begin(now);
    if (!Pending()) {
        Set(flying_.Front().at);
    }
}

void Link::Begin(Picoseconds now) {
    while (free_at_ <= now && !(queues_[0].packets.Empty() && queues_[1].packets.Empty())) {
        urgent_ = !queues_[1].packets.Empty();
        Queue& queue = queues_[urgent_];
        const Packet packet = queue.packets.Pop();
        const Picoseconds time = TimeOf(packet);
        queue.time -= time;
        free_at_ += time;
        flying_.Push({free_at_ + options_.delay, packet});
    }
}

Link::Count Link::Sent() const {
    Count total;
    for (int kind = 0; kind < kExchangeKinds; ++kind) {
        total.frames += sent_[kind].frames;
        total.bytes += sent_[kind].bytes;
    }
    return total;
}

void Link::Ring(Picoseconds now) {
    while (!flying_.Empty() && flying_.Front().at <= now) {
        const Packet packet = flying_.Pop().packet;
        trace_.Take(now, meter_ == nullptr, port_, packet);
        end_.Receive(packet, port_, now);
    }
    Begin(now);
    if (!flying_.Empty() && !Pending()) {
        Set(flying_.Front().at);
    }
}

void Link::Mark(Packet& packet, double waiting) {
    if (waiting > options_.ecn_bytes && Markable(packet)) {
        packet.ecn = true;
        ++(packet.kind == Kind::BACKGROUND ? background_marked_ : marked_);
    }
}

/// Acknowledgements between hosts are not ECN-capable: they say whether their frames were marked.
bool Link::Markable(const Packet& packet) {
    if (packet.kind == Kind::BACKGROUND_ACK) {
        return false;
    }
    return packet.kind == Kind::FEATURE || packet.kind == Kind::BACKGROUND || !packet.between_hosts;
}

Picoseconds Link::TimeOf(const Packet& packet) const {
    const uint32_t bytes = FrameBytes(packet);
    return bytes == FrameBytes(packet.kind) ? time_of_[static_cast<size_t>(packet.kind)]
                                            : options_.TimeOf(bytes + options_.overhead_bytes);
}

void Link::Lose(const Packet& packet, double waiting) {
    if (!options_.loses) {
        std::ostringstream message;
        message
            << "The queue to " << end_.Name(port_) << " is full: a packet found "
            << std::llround(waiting) << " bytes waiting, and " << options_.buffer_bytes
            << " fit. Packets lost there are not sent again in this model: give a larger buffer.";
        throw SimulationError(message.str());
    }
    if (packet.kind == Kind::BACKGROUND) {
        ++background_lost_.frames;
        background_lost_.bytes += packet.count;
        return;
    }
    ++lost_;
}
