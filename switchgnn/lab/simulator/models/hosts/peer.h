// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// A worker without the switch's help: host/direct/outbox.py and host/direct/arrivals.py.
#pragma once

#include "base/events.h"
#include "hosts/host.h"
#include "network/packet.h"

#include <map>
#include <optional>
#include <span>
#include <vector>

/// Which frames of all senders have arrived; each frame has one receiver, so all hosts share it.
class Arrived {
  public:
    /// indptr: where the frames of each sender begin.
    explicit Arrived(std::span<const uint64_t> indptr) : indptr_(indptr), arrived_(indptr.back()) {}

    /// Note that a frame has arrived; return whether it is the first time.
    bool Take(uint32_t sender, uint32_t place) {
        const uint64_t at = indptr_[sender] + place;
        const bool news = !arrived_[at];
        arrived_[at] = true;
        return news;
    }

    /// A bit for each missing frame of the run of that length that ends at the place.
    uint8_t Missing(uint32_t sender, uint32_t place, uint16_t length) const {
        uint8_t missing = 0;
        const uint64_t first = indptr_[sender] + place + 1 - length;
        for (uint16_t i = 0; i < length; ++i) {
            missing |= static_cast<uint8_t>(!arrived_[first + i] << i);
        }
        return missing;
    }

  private:
    std::span<const uint64_t> indptr_;
    std::vector<bool> arrived_;
};

/// The runs of frames of one sender that have not been acknowledged whole. A run ends with the
/// frame that asks; its place names the run.
class Resender {
  public:
    /// Sends a question about a run of frames of that length.
    using Ask = std::function<void(uint32_t place, uint16_t length, Picoseconds now)>;

    /// The content of an acknowledgement.
    struct Answer {
        uint32_t confirmed = 0;
        /// The places of frames that are lost.
        std::vector<uint32_t> lost;
    };

    Resender(const RoundTrip& round_trip, Ask ask);

    /// A frame that asks has been sent.
    void Sent(uint32_t place, uint16_t length, Picoseconds now);
    Answer Take(const Packet& ack);
    /// Lost frames have been sent again: ask whether they arrive.
    void AskAbout(uint32_t place, Picoseconds now);

  private:
    struct Run {
        uint16_t length;
        uint8_t missing;
        Picoseconds asked_at;
        int attempts;
    };

    void Late(Picoseconds now);

    const RoundTrip& round_trip_;
    Ask ask_;
    ns3::Ptr<Timer> timer_;
    std::map<uint32_t, Run> open_;
};

/// Sends a copy to each worker that needs it, as BNS-GCN with p = 1.
class Peer : public Host {
  public:
    /// to: the receiver of each frame, in sending order.
    /// confirms: how many frames its ACK confirms; 0 where none is asked for.
    /// bytes: of the frame.
    Peer(uint32_t worker, const PaceOptions& pace, std::span<const uint8_t> to,
         std::span<const uint8_t> confirms, std::span<const uint16_t> bytes, uint64_t awaited);

    void Start(Picoseconds now) override;
    void Receive(const Packet& packet, uint32_t port, Picoseconds now) override;

    /// Expect frames to be lost; arrivals are noted in `arrived`.
    void ExpectLosses(Arrived& arrived);

    uint64_t Recalled() const override { return recalled_; }
    uint64_t SentAgain() const override { return sent_again_; }
    uint64_t Repeated() const override { return repeated_; }

  protected:
    void SendNext(Picoseconds now) override;

    uint64_t Sendable() const override { return to_.size() - sent_; }
    uint64_t InFlight() const override { return sent_ - confirmed_; }

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
