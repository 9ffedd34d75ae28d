// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "switches/switch.h"

AddingSwitch::AddingSwitch(const Schedule& schedule, Slots& slots, Picoseconds service)
    : adder_(slots),
      schedule_(schedule),
      loop_(ns3::Create<Loop>(
          [this](Circling& circling, Picoseconds at) { return Pass(circling, at); }, service)),
      outlet_(ns3::Create<Outlet>([this](const Packet& packet, uint32_t worker, Picoseconds now) {
          Send(packet, worker, now);
      })) {}

Tally AddingSwitch::Count() const {
    Tally tally = adder_.Count();
    tally.loop_passes = loop_->Passes();
    tally.max_loop_queue = loop_->Longest();
    return tally;
}

void AddingSwitch::Receive(const Packet& packet, uint32_t, Picoseconds now) {
    if (packet.between_hosts) {
        down_[packet.id]->Send(packet, now);
        return;
    }
    switch (packet.kind) {
        case Kind::FEATURE:
            Take(packet, now);
            break;
        case Kind::DONE:
            Collect(now);
            break;
        case Kind::RECALL:
            Recall(packet, now);
            break;
        case Kind::NOTICE:
            Notice(packet, now);
            break;
        default:
            break;
    }
}

void AddingSwitch::Take(const Packet& packet, Picoseconds now) {
    Circling circling{packet, schedule_.ContributionsOf(packet.id)};
    if (Pass(circling, now)) {
        loop_->Add(circling, now);
    }
}

bool AddingSwitch::Pass(Circling& circling, Picoseconds at) {
    bool left = false;
    if (!circling.through) {
        left = Contribute(circling, at);
        circling.through = circling.left.empty();
        if (!circling.through || (left && circling.packet.echo)) {
            return true;
        }
    }
    if (circling.packet.echo) {
        Packet ack{.kind = Kind::ACK, .asked = circling.packet.asked};
        ack.group = circling.packet.group;
        Leave(ack, circling.packet.worker, at);
    }
    return false;
}

bool AddingSwitch::Contribute(Circling& circling, Picoseconds at) {
    ++adder_.tally.passes;
    size_t used = 0;
    bool left = false;
    for (const uint32_t word : circling.left) {
        ++used;
        if (Add(schedule_.RowOf(word, circling.packet.id), circling.packet, at)) {
            left = true;
            break;
        }
        if (word & Schedule::kLastOfPass) {
            break;
        }
    }
    circling.left = circling.left.subspan(used);
    return left;
}

void AddingSwitch::Leave(const Packet& packet, uint32_t worker, Picoseconds at) {
    if (at == ns3::Simulator::Now().GetTimeStep()) {
        Send(packet, worker, at);
    } else {
        outlet_->Add(packet, worker, at);
    }
}

/// A sum stays in its slot while it is in a queue, and when it is lost.
void AddingSwitch::Send(const Packet& packet, uint32_t worker, Picoseconds now) {
    if (left_sums_ && packet.kind == Kind::SUM) {
        left_sums_->Note(packet.id, {packet.count, packet.bytes});
    }
    down_[worker]->Send(packet, now);
}

/// One pass, without the loop: it touches one slot.
void AddingSwitch::Recall(const Packet& packet, Picoseconds now) {
    Packet answer{.kind = Kind::MISSING, .id = packet.id, .group = packet.group};
    const LeftSums::Left left = left_sums_->Of(packet.id);
    if (left.count != 0) {
        answer.kind = Kind::SUM;
        answer.count = left.count;
        answer.bytes = left.bytes;
        ++adder_.tally.sent_again;
    }
    down_[packet.worker]->Send(answer, now);
}

void AddingSwitch::Collect(Picoseconds now) {
    if (++done_ < down_.size()) {
        return;
    }
    done_ = 0;
    Done(now);
}

void AddingSwitch::Done(Picoseconds now) {
    Advance(now);
}

void AddingSwitch::Advance(Picoseconds now) {
    adder_.CheckComplete();
    ++adder_.tally.barriers;
    if (left_sums_) {
        left_sums_->Clear();
    }
    TellAll({.kind = Kind::ADVANCE}, now);
}

void AddingSwitch::TellAll(const Packet& message, Picoseconds now) {
    for (uint32_t place = 0; place < down_.size(); ++place) {
        Packet packet = message;
        packet.worker = static_cast<uint16_t>(WorkerAt(place));
        down_[place]->Send(packet, now);
    }
}
