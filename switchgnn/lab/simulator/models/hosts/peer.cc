// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "hosts/peer.h"

#include <bit>

Resender::Resender(const RoundTrip& round_trip, Ask ask)
    : round_trip_(round_trip),
      ask_(std::move(ask)),
      timer_(ns3::Create<Timer>([this](Picoseconds now) { Late(now); })) {}

void Resender::Sent(uint32_t place, uint16_t length, Picoseconds now) {
    open_[place] = {length, static_cast<uint8_t>((1U << length) - 1), now, 0};
    if (!timer_->On()) {
        timer_->SetTo(now + round_trip_.BackedOff(0));
    }
}

Resender::Answer Resender::Take(const Packet& ack) {
    Answer answer;
    const auto found = open_.find(ack.group);
    if (found == open_.end()) {
        return answer;
    }
    Run& run = found->second;
    run.attempts = 0;
    answer.confirmed = std::popcount(static_cast<uint8_t>(run.missing & ~ack.missing));
    run.missing &= ack.missing;
    // An answer to an earlier question says nothing about frames sent again since.
    for (uint16_t i = 0; i < run.length && ack.asked >= run.asked_at; ++i) {
        if (run.missing >> i & 1) {
            answer.lost.push_back(ack.group + 1 - run.length + i);
        }
    }
    if (run.missing == 0) {
        open_.erase(found);
    }
    if (open_.empty()) {
        timer_->Stop();
    }
    return answer;
}

void Resender::AskAbout(uint32_t place, Picoseconds now) {
    Run& run = open_.at(place);
    run.asked_at = now;
    ask_(place, run.length, now);
}

void Resender::Late(Picoseconds now) {
    Picoseconds next = now + round_trip_.BackedOff(0);
    for (auto& [place, run] : open_) {
        if (now >= run.asked_at + round_trip_.BackedOff(run.attempts)) {
            ++run.attempts;
            AskAbout(place, now);
        }
        next = std::min(next, run.asked_at + round_trip_.BackedOff(run.attempts));
    }
    timer_->SetTo(next);
}

Peer::Peer(uint32_t worker, const PaceOptions& pace, std::span<const uint8_t> to,
           std::span<const uint8_t> confirms, std::span<const uint16_t> bytes, uint64_t awaited)
    : Host(worker, pace),
      to_(to),
      confirms_(confirms),
      bytes_(bytes),
      awaited_(awaited),
      marked_(256) {}

void Peer::Start(Picoseconds now) {
    SendSome(now);
    FinishIfThrough(now);
}

void Peer::ExpectLosses(Arrived& arrived) {
    arrived_ = &arrived;
    resender_.emplace(congestion_.Trip(), [this](uint32_t place, uint16_t length, Picoseconds now) {
        Question(place, length, now);
    });
}

void Peer::Receive(const Packet& packet, uint32_t, Picoseconds now) {
    switch (packet.kind) {
        case Kind::ACK:
            TakeAck(packet, now);
            break;
        case Kind::RECALL:
            Acknowledge(packet, now);
            break;
        default:
            TakeFrame(packet, now);
            break;
    }
    FinishIfThrough(now);
}

void Peer::SendNext(Picoseconds now) {
    const Packet packet = FrameAt(sent_, now);
    ++sent_;
    up_->Send(packet, now);
    if (resender_ && packet.echo) {
        resender_->Sent(packet.group, packet.count, now);
    }
}

Packet Peer::FrameAt(uint64_t place, Picoseconds now) const {
    Packet packet{.kind = Kind::FEATURE, .worker = static_cast<uint16_t>(worker_), .asked = now};
    packet.id = to_[place];
    packet.count = confirms_[place];
    packet.bytes = bytes_[place];
    packet.echo = packet.count != 0;
    packet.group = static_cast<uint32_t>(place);
    packet.between_hosts = true;
    return packet;
}

void Peer::TakeFrame(const Packet& packet, Picoseconds now) {
    marked_[packet.worker] = marked_[packet.worker] || packet.ecn;
    if (arrived_ && !arrived_->Take(packet.worker, packet.group)) {
        ++repeated_;
    } else {
        --awaited_;
    }
    if (packet.echo) {
        Acknowledge(packet, now);
    }
}

/// An ACK says whether frames came marked, and is not marked itself.
void Peer::Acknowledge(const Packet& packet, Picoseconds now) {
    Packet ack{.kind = Kind::ACK, .ecn = marked_[packet.worker], .asked = packet.asked};
    marked_[packet.worker] = false;
    ack.worker = static_cast<uint16_t>(worker_);
    ack.id = packet.worker;
    ack.count = packet.count;
    ack.group = packet.group;
    ack.missing =
        arrived_ ? arrived_->Missing(packet.worker, packet.group, packet.count) : uint8_t{0};
    ack.between_hosts = true;
    up_->Send(ack, now);
}

void Peer::TakeAck(const Packet& packet, Picoseconds now) {
    congestion_.Measured(now - packet.asked);
    const uint32_t confirmed = resender_ ? Confirmed(packet, now) : packet.count;
    confirmed_ += confirmed;
    congestion_.Marked(packet.ecn ? confirmed : 0);
    congestion_.Acknowledged(confirmed);
    SendSome(now);
}

/// Lost frames are sent again, outside the window: they are in flight already.
uint32_t Peer::Confirmed(const Packet& ack, Picoseconds now) {
    const Resender::Answer answer = resender_->Take(ack);
    for (const uint32_t place : answer.lost) {
        Packet packet = FrameAt(place, now);
        packet.echo = false;
        ++sent_again_;
        up_->Send(packet, now);
    }
    if (!answer.lost.empty()) {
        congestion_.Lost(now);
        resender_->AskAbout(ack.group, now);
    }
    return answer.confirmed;
}

void Peer::Question(uint32_t place, uint16_t length, Picoseconds now) {
    Packet question{.kind = Kind::RECALL, .worker = static_cast<uint16_t>(worker_), .asked = now};
    question.id = to_[place];
    question.count = length;
    question.group = place;
    question.between_hosts = true;
    ++recalled_;
    up_->Send(question, now);
}

void Peer::FinishIfThrough(Picoseconds now) {
    if (!Finished() && awaited_ == 0 && confirmed_ == to_.size()) {
        Finish(now);
    }
}
