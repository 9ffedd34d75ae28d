// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "hosts/worker.h"

#include <algorithm>
#include <limits>

namespace {
// As in host/innetwork/receiver.py and host/round_trip.py.
constexpr int kAtOnce = 16;
constexpr Picoseconds kRecallShare = 4;
constexpr int kAttemptsWhenAnswered = 3;
// Time-outs without any sum; each is longer than the one before by a quarter of the block.
constexpr int kPatience = 64;

constexpr uint32_t kMostTold = std::numeric_limits<uint16_t>::max();
}  // namespace

Recaller::Recaller(Expectant& expectant, const RoundTrip& round_trip)
    : expectant_(expectant),
      round_trip_(round_trip),
      timer_(ns3::Create<Timer>([this](Picoseconds now) { Late(now); })) {}

void Recaller::Begin(Picoseconds now) {
    Stop();
    marked_ = false;
    began_ = now;
}

void Recaller::Wait(Picoseconds now) {
    if (!waiting_) {
        waiting_ = true;
        attempts_ = in_vain_ = 0;
        quiet_since_ = now;
        timer_->SetTo(Due(now));
    }
}

void Recaller::Heard(Picoseconds now) {
    if (!waiting_) {
        return;
    }
    attempts_ = in_vain_ = 0;
    quiet_since_ = now;
    AskNext(now);
    timer_->SetTo(Due(now));
}

void Recaller::NotYet(Picoseconds now) {
    attempts_ = std::min(attempts_, kAttemptsWhenAnswered);
    AskNext(now);
}

void Recaller::Stop() {
    waiting_ = false;
    timer_->Stop();
    to_ask_.clear();
    asked_ = 0;
}

void Recaller::Late(Picoseconds now) {
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

void Recaller::AskNext(Picoseconds now) {
    while (asked_ < to_ask_.size() && !expectant_.Misses(to_ask_[asked_])) {
        ++asked_;
    }
    if (asked_ < to_ask_.size()) {
        expectant_.Recall(to_ask_[asked_++], now);
    }
}

/// The time that has passed shows how slow the others are.
Picoseconds Recaller::Due(Picoseconds now) const {
    const Picoseconds share = (now - began_) / kRecallShare;
    return quiet_since_ + std::max(share, round_trip_.BackedOff(attempts_, !marked_));
}

Worker::Worker(const Schedule& schedule, uint32_t worker, const PaceOptions& pace, bool opening)
    : Host(worker, pace), schedule_(schedule), left_(schedule.RowsOf(worker)), opening_(opening) {
    if (pace.losses) {
        recaller_.emplace(*this, congestion_.Trip());
    }
}

void Worker::Start(Picoseconds now) {
    if (!opening_) {
        Advance(now);
        return;
    }
    up_->Send({.kind = Kind::DONE, .worker = static_cast<uint16_t>(worker_)}, now);
}

void Worker::Receive(const Packet& packet, uint32_t, Picoseconds now) {
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

/// As host/innetwork/receiver.py and host/congestion.py.
void Worker::Heed(const Packet& packet, Picoseconds now) {
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
        ++notices_;
        Packet notice{.kind = Kind::NOTICE, .worker = static_cast<uint16_t>(worker_)};
        notice.count = static_cast<uint16_t>(std::min(untold_, kMostTold));
        up_->Send(notice, now);
        untold_ = 0;
    }
}

void Worker::Advance(Picoseconds now) {
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

void Worker::Begin(Picoseconds now) {
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

uint64_t Worker::Sendable() const {
    const uint64_t furthest = uint64_t{first_waiting_ + pace_.groups_apart} * pace_.group;
    return std::min(size_, furthest) - sent_;
}

void Worker::SendNext(Picoseconds now) {
    Packet packet{.kind = Kind::FEATURE, .worker = static_cast<uint16_t>(worker_), .asked = now};
    packet.count = schedule_.CountOf(first_ + sent_);
    packet.id = static_cast<uint32_t>(first_ + sent_);
    packet.bytes = schedule_.BytesOf(packet.id, fragment_);
    packet.group = static_cast<uint32_t>(sent_ / pace_.group);
    ++sent_;
    packet.echo = sent_ % pace_.group == 0 || sent_ == size_;
    up_->Send(packet, now);
}

void Worker::TakeAck(const Packet& packet, Picoseconds now) {
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

void Worker::TakePart(const Packet& packet, Picoseconds now) {
    uint16_t& left = left_[schedule_.PlaceOf(packet.id)];
    // An ADVANCE overtakes what was recalled for nothing.
    const bool late = packet.group != 0 && packet.group != Round();
    if (recaller_ && (left == 0 || late)) {
        ++repeated_;
        return;
    }
    ++parts_received_;
    if (packet.count > left) {
        throw SimulationError("A worker got more contributions to a sum than it has neighbours.");
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

void Worker::CloseIfThrough(Picoseconds now) {
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

std::vector<uint32_t> Worker::MissingRows() const {
    std::vector<uint32_t> rows;
    const uint64_t count = schedule_.ShareOf(worker_, block_).rows;
    for (uint64_t place = 0; place < count; ++place) {
        if (left_[place] != 0) {
            rows.push_back(schedule_.RowAt(worker_, block_, place));
        }
    }
    return rows;
}

void Worker::Recall(uint32_t row, Picoseconds now) {
    ++recalled_;
    Packet recall{.kind = Kind::RECALL, .worker = static_cast<uint16_t>(worker_), .id = row};
    recall.group = Round();
    up_->Send(recall, now);
}

uint32_t Worker::GroupSize(uint32_t group) const {
    const uint64_t left = size_ - uint64_t{group} * pace_.group;
    return static_cast<uint32_t>(std::min<uint64_t>(pace_.group, left));
}
