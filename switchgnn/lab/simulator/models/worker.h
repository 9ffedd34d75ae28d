// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// A worker whose sums the switch makes (host/innetwork/exchange.py), alone or beside hosts' rows.
#pragma once

#include "events.h"
#include "host.h"
#include "peer.h"
#include "schedule.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

// As in host/innetwork/receiver.py and host/round_trip.py.
constexpr int kAtOnce = 16;
constexpr Picoseconds kRecallShare = 4;
constexpr int kAttemptsWhenAnswered = 3;
// Time-outs without any sum; each is longer than the one before by a quarter of the block.
constexpr int kPatience = 64;

constexpr uint32_t kMostTold = std::numeric_limits<uint16_t>::max();

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
    Recaller(Expectant& expectant, const RoundTrip& round_trip)
        : expectant_(expectant),
          round_trip_(round_trip),
          timer_(ns3::Create<Timer>([this](Picoseconds now) { Late(now); })) {}

    /// A fragment of a block begins.
    void Begin(Picoseconds now) {
        Stop();
        marked_ = false;
        began_ = now;
    }

    /// The worker's own features are through, and sums are missing.
    void Wait(Picoseconds now) {
        if (!waiting_) {
            waiting_ = true;
            attempts_ = in_vain_ = 0;
            quiet_since_ = now;
            timer_->SetTo(Due(now));
        }
    }

    /// A packet came marked: the queue was long, so missing sums are lost there rather than late,
    /// and the shortest time-out, which is for slow hosts, does not apply.
    void Marked() { marked_ = true; }
    /// A sum came.
    void Heard(Picoseconds now) {
        if (!waiting_) {
            return;
        }
        attempts_ = in_vain_ = 0;
        quiet_since_ = now;
        AskNext(now);
        timer_->SetTo(Due(now));
    }

    /// The switch has answered that a sum is not complete.
    void NotYet(Picoseconds now) {
        attempts_ = std::min(attempts_, kAttemptsWhenAnswered);
        AskNext(now);
    }

    /// All are here.
    void Stop() {
        waiting_ = false;
        timer_->Stop();
        to_ask_.clear();
        asked_ = 0;
    }

  private:
    void Late(Picoseconds now) {
        if (++in_vain_ > kPatience) {
            throw SimulationError("Nothing happens any more, but workers wait: the plan is wrong.");
        }
        ++attempts_;
        quiet_since_ = now;
        to_ask_ = expectant_.MissingRows();
        asked_ = 0;
        for (int i = 0; i < kAtOnce; ++i) {
            AskNext(now);
        }
        timer_->SetTo(Due(now));
    }

    void AskNext(Picoseconds now) {
        while (asked_ < to_ask_.size() && !expectant_.Misses(to_ask_[asked_])) {
            ++asked_;
        }
        if (asked_ < to_ask_.size()) {
            expectant_.Recall(to_ask_[asked_++], now);
        }
    }

    /// The time that has passed shows how slow the others are.
    Picoseconds Due(Picoseconds now) const {
        const Picoseconds share = (now - began_) / kRecallShare;
        return quiet_since_ + std::max(share, round_trip_.BackedOff(attempts_, !marked_));
    }

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
    Worker(const Schedule& schedule, uint32_t worker, const PaceOptions& pace, bool opening)
        : Host(worker, pace),
          schedule_(schedule),
          left_(schedule.RowsOf(worker)),
          opening_(opening) {
        if (pace.losses) {
            recaller_.emplace(*this, congestion_.Trip());
        }
    }

    /// Open the exchange, or begin with its first block.
    void Start(Picoseconds now) override {
        if (!opening_) {
            Advance(now);
            return;
        }
        up_->Send({.kind = Kind::DONE, .worker = static_cast<uint16_t>(worker_)}, now);
    }

    void Receive(const Packet& packet, uint32_t, Picoseconds now) override {
        Heed(packet, now);
        switch (packet.kind) {
            case Kind::ADVANCE:
                Advance(now);
                break;
            case Kind::ACK:
                TakeAck(packet, now);
                break;
            case Kind::SUM:
            case Kind::FEATURE:
                TakePart(packet, now);
                break;
            case Kind::MISSING:
                recaller_->NotYet(now);
                break;
            default:
                break;
        }
    }

  protected:
    void SendNext(Picoseconds now) override {
        Packet packet{
            .kind = Kind::FEATURE, .worker = static_cast<uint16_t>(worker_), .asked = now};
        packet.count = schedule_.CountOf(first_ + sent_);
        packet.id = static_cast<uint32_t>(first_ + sent_);
        packet.bytes = schedule_.BytesOf(packet.id, fragment_);
        packet.group = static_cast<uint32_t>(sent_ / pace_.group);
        ++sent_;
        packet.echo = sent_ % pace_.group == 0 || sent_ == size_;
        up_->Send(packet, now);
    }

    uint64_t Sendable() const override {
        const uint64_t furthest = uint64_t{first_waiting_ + pace_.groups_apart} * pace_.group;
        return std::min(size_, furthest) - sent_;
    }

    uint64_t InFlight() const override { return sent_ - confirmed_; }

  private:
    std::vector<uint32_t> MissingRows() const override {
        std::vector<uint32_t> rows;
        const uint64_t count = schedule_.ShareOf(worker_, block_).rows;
        for (uint64_t rank = 0; rank < count; ++rank) {
            if (left_[rank] != 0) {
                rows.push_back(schedule_.RowAt(worker_, block_, rank));
            }
        }
        return rows;
    }

    void Recall(uint32_t row, Picoseconds now) override {
        ++tally_.recalled;
        Packet recall{.kind = Kind::RECALL, .worker = static_cast<uint16_t>(worker_), .id = row};
        recall.group = Round();
        up_->Send(recall, now);
    }

    bool Misses(uint32_t row) const override { return left_[schedule_.RankOf(row)] != 0; }

    /// As host/innetwork/receiver.py and host/congestion.py.
    void Heed(const Packet& packet, Picoseconds now) {
        if (packet.kind == Kind::NOTICE) {
            congestion_.Marked(packet.count * schedule_.PacketsPerSum(worker_, block_));
            return;
        }
        const bool data = packet.kind == Kind::SUM || packet.kind == Kind::FEATURE;
        if (!packet.ecn || !data) {
            return;
        }
        ++untold_;
        if (recaller_ && pace_.congestion_control) {
            recaller_->Marked();
        }
        if (!notified_ || now - last_notice_ >= congestion_.Smoothed()) {
            notified_ = true;
            last_notice_ = now;
            Packet notice{.kind = Kind::NOTICE, .worker = static_cast<uint16_t>(worker_)};
            notice.count = static_cast<uint16_t>(std::min(untold_, kMostTold));
            up_->Send(notice, now);
            untold_ = 0;
        }
    }

    void Advance(Picoseconds now) {
        if (open_ && ++fragment_ == schedule_.fragments) {
            fragment_ = 0;
            ++block_;
        }
        open_ = true;
        if (block_ == schedule_.blocks) {
            Finish(now);
            return;
        }
        Begin(now);
    }

    void Begin(Picoseconds now) {
        const Schedule::Share share = schedule_.ShareOf(worker_, block_);
        first_ = share.first_packet;
        size_ = share.packets;
        awaited_ = share.rows;
        schedule_.Expect(worker_, block_, left_);
        sent_ = confirmed_ = 0;
        first_waiting_ = 0;
        acknowledged_.assign((size_ + pace_.group - 1) / pace_.group, false);
        reported_ = false;
        if (recaller_) {
            recaller_->Begin(now);
        }
        SendSome(now);
        CloseIfThrough(now);
    }

    void TakeAck(const Packet& packet, Picoseconds now) {
        congestion_.Measured(now - packet.asked);
        confirmed_ += GroupSize(packet.group);
        congestion_.Acknowledged(GroupSize(packet.group));
        acknowledged_[packet.group] = true;
        while (first_waiting_ < acknowledged_.size() && acknowledged_[first_waiting_]) {
            ++first_waiting_;
        }
        SendSome(now);
        CloseIfThrough(now);
    }

    void TakePart(const Packet& packet, Picoseconds now) {
        uint16_t& left = left_[schedule_.RankOf(packet.id)];
        // An ADVANCE overtakes what was recalled for nothing.
        const bool late = packet.group != 0 && packet.group != Round();
        if (recaller_ && (left == 0 || late)) {
            ++tally_.repeated;
            return;
        }
        if (packet.count > left) {
            throw SimulationError(
                "A worker got more contributions to a sum than it has neighbours.");
        }
        left -= packet.count;
        if (left == 0) {
            --awaited_;
            if (recaller_) {
                recaller_->Heard(now);
            }
            CloseIfThrough(now);
        }
    }

    void CloseIfThrough(Picoseconds now) {
        if (!reported_ && confirmed_ == size_ && awaited_ == 0) {
            reported_ = true;
            if (recaller_) {
                recaller_->Stop();
            }
            up_->Send({.kind = Kind::DONE, .worker = static_cast<uint16_t>(worker_)}, now);
        } else if (recaller_ && !reported_ && confirmed_ == size_) {
            recaller_->Wait(now);
        }
    }

    uint32_t GroupSize(uint32_t group) const {
        const uint64_t left = size_ - uint64_t{group} * pace_.group;
        return static_cast<uint32_t>(std::min<uint64_t>(pace_.group, left));
    }

    /// The fragment among those of all blocks, from 1.
    uint32_t Round() const { return block_ * schedule_.fragments + fragment_ + 1; }

    const Schedule& schedule_;
    // Contributions that each row of this worker still misses, by rank among its rows.
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
    // Data packets that came marked since the last notice.
    uint32_t untold_ = 0;
    // Only where packets can be lost.
    std::optional<Recaller> recaller_;
};

/// Both parts share a link, begin at once, and have a window each.
class MixedHost : public Participant {
  public:
    MixedHost(std::unique_ptr<Worker> worker, std::unique_ptr<Peer> peer)
        : worker_(std::move(worker)), peer_(std::move(peer)) {}

    void Attach(Link& up) override {
        worker_->Attach(up);
        peer_->Attach(up);
    }

    void Start(Picoseconds now) override {
        worker_->Start(now);
        peer_->Start(now);
    }

    void Receive(const Packet& packet, uint32_t port, Picoseconds now) override {
        if (packet.between_hosts) {
            peer_->Receive(packet, port, now);
        } else {
            worker_->Receive(packet, port, now);
        }
    }

    bool Finished() const override { return worker_->Finished() && peer_->Finished(); }

    Picoseconds FinishedAt() const override {
        return std::max(worker_->FinishedAt(), peer_->FinishedAt());
    }

    void CountInto(HostTally& total) const override {
        worker_->CountInto(total);
        peer_->CountInto(total);
    }

  private:
    std::unique_ptr<Worker> worker_;
    std::unique_ptr<Peer> peer_;
};
