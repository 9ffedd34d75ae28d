// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// A worker without the switch's help: a copy for each worker that needs it, as BNS-GCN with p = 1.
// host/direct/outbox.py and host/direct/arrivals.py.
#ifndef SWITCHGNN_PEER_H
#define SWITCHGNN_PEER_H

#include "hosts/host.h"
#include "hosts/resender.h"

#include <optional>
#include <span>
#include <vector>

class Peer : public Host
{
  public:
    /// to: the receiver of each frame, in sending order.
    /// confirms: how many frames its ACK confirms; 0 where none is asked for.
    /// bytes: of the frame.
    Peer(uint32_t worker,
         const PaceOptions& pace,
         std::span<const uint8_t> to,
         std::span<const uint8_t> confirms,
         std::span<const uint16_t> bytes,
         uint64_t awaited);

    void Start(Picoseconds now) override;
    void Receive(const Packet& packet, uint32_t port, Picoseconds now) override;

    /// Frames can be lost; where they have come is noted there.
    void ExpectLosses(Arrived& arrived);

    uint64_t Recalled() const override
    {
        return recalled_;
    }

    uint64_t SentAgain() const override
    {
        return sent_again_;
    }

    uint64_t Repeated() const override
    {
        return repeated_;
    }

  protected:
    void SendNext(Picoseconds now) override;

    uint64_t Sendable() const override
    {
        return to_.size() - sent_;
    }

    uint64_t InFlight() const override
    {
        return sent_ - confirmed_;
    }

  private:
    void TakeFrame(const Packet& packet, Picoseconds now);
    void Acknowledge(const Packet& packet, Picoseconds now);
    void TakeAck(const Packet& packet, Picoseconds now);
    uint32_t Confirmed(const Packet& ack, Picoseconds now);
    Packet FrameAt(uint64_t place, Picoseconds now) const;
    void Question(uint32_t place, uint16_t length, Picoseconds now);
    void FinishIfThrough(Picoseconds now);

    std::span<const uint8_t> to_;
    std::span<const uint8_t> confirms_;
    std::span<const uint16_t> bytes_;
    uint64_t awaited_;
    uint64_t sent_ = 0;
    uint64_t confirmed_ = 0;
    // From whom marked frames came since the last ACK to it.
    std::vector<bool> marked_;
    // Only where packets can be lost.
    Arrived* arrived_ = nullptr;
    std::optional<Resender> resender_;
    uint64_t recalled_ = 0;
    uint64_t sent_again_ = 0;
    uint64_t repeated_ = 0;
};

#endif
