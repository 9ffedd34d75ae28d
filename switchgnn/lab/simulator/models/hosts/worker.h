// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// A worker whose sums are made in the switch: host/innetwork/exchange.py.
#pragma once

#include "base/events.h"
#include "base/schedule.h"
#include "hosts/host.h"

#include <optional>
#include <vector>

/// The worker of a recaller.
class Expectant {
  public:
    virtual ~Expectant() = default;
    /// The rows of this block that have not come.
    virtual std::vector<uint32_t> MissingRows() const = 0;
    virtual bool Misses(uint32_t row) const = 0;
    virtual void Recall(uint32_t row, Picoseconds now) = 0;
};

/// Asks for missing sums. After a silence it asks for sixteen; then each answer triggers the next
/// question about those missing at that time, as they may be thousands. host/innetwork/receiver.py
/// first asks for one; at the speed of hardware, sixteen take the time of a few packets. Nothing is
/// lost inside the simulated switch, so every sum arrives at last, and nothing is fetched.
class Recaller {
  public:
    Recaller(Expectant& expectant, const RoundTrip& round_trip);

    /// A fragment of a block begins.
    void Begin(Picoseconds now);
    /// The worker's own features are through, and sums are missing.
    void Wait(Picoseconds now);
    /// A packet came marked: the queue was long, so missing sums are lost there rather than late,
    /// and the shortest time-out, which is for slow hosts, does not apply.
    void Marked() { marked_ = true; }
    /// A sum came.
    void Heard(Picoseconds now);
    /// The switch has answered that a sum is not complete.
    void NotYet(Picoseconds now);
    /// All are here.
    void Stop();

  private:
    void Late(Picoseconds now);
    void AskNext(Picoseconds now);
    Picoseconds Due(Picoseconds now) const;

    Expectant& expectant_;
    const RoundTrip& round_trip_;
    ns3::Ptr<Timer> timer_;
    Picoseconds began_ = 0;
    Picoseconds quiet_since_ = 0;
    bool waiting_ = false;
    bool marked_ = false;
    int attempts_ = 0;
    int in_vain_ = 0;
    std::vector<uint32_t> to_ask_;
    size_t asked_ = 0;
};

class Worker : public Host, public Expectant {
  public:
    /// opening: whether the exchange begins with a barrier.
    Worker(const Schedule& schedule, uint32_t worker, const PaceOptions& pace, bool opening);

    /// Open the exchange, or begin with its first block.
    void Start(Picoseconds now) override;
    void Receive(const Packet& packet, uint32_t port, Picoseconds now) override;

    uint64_t Notices() const { return notices_; }
    /// Sums and overflowed features that have arrived.
    uint64_t PartsReceived() const { return parts_received_; }
    uint64_t Recalled() const override { return recalled_; }
    uint64_t Repeated() const override { return repeated_; }

  protected:
    void SendNext(Picoseconds now) override;
    uint64_t Sendable() const override;

    uint64_t InFlight() const override { return sent_ - confirmed_; }

  private:
    std::vector<uint32_t> MissingRows() const override;
    void Recall(uint32_t row, Picoseconds now) override;

    bool Misses(uint32_t row) const override { return left_[schedule_.PlaceOf(row)] != 0; }

    void Heed(const Packet& packet, Picoseconds now);
    void Advance(Picoseconds now);
    void Begin(Picoseconds now);
    void TakeAck(const Packet& packet, Picoseconds now);
    void TakePart(const Packet& packet, Picoseconds now);
    void CloseIfThrough(Picoseconds now);
    uint32_t GroupSize(uint32_t group) const;
    /// The fragment among those of all blocks, from 1.
    uint32_t Round() const { return block_ * schedule_.fragments + fragment_ + 1; }

    const Schedule& schedule_;
    // Contributions that each row of this worker still misses, by place among its rows.
    std::vector<uint16_t> left_;
    // Whether the first block has begun.
    bool open_ = false;
    bool opening_;
    uint32_t block_ = 0;
    uint32_t fragment_ = 0;
    uint64_t first_ = 0;
    uint64_t size_ = 0;
    uint64_t sent_ = 0;
    uint64_t confirmed_ = 0;
    uint64_t awaited_ = 0;
    bool reported_ = false;
    std::vector<bool> acknowledged_;
    uint32_t first_waiting_ = 0;
    bool notified_ = false;
    Picoseconds last_notice_ = 0;
    uint64_t notices_ = 0;
    // Data packets that came marked since the last notice.
    uint32_t untold_ = 0;
    uint64_t parts_received_ = 0;
    // Only where packets can be lost.
    std::optional<Recaller> recaller_;
    uint64_t recalled_ = 0;
    uint64_t repeated_ = 0;
};
