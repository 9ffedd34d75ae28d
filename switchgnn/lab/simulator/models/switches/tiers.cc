// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "switches/tiers.h"

void PlainLeaf::Receive(const Packet& packet, uint32_t, Picoseconds now) {
    if (uplinks_.Here(packet.id)) {
        down_[packet.id - uplinks_.First()]->Send(packet, now);
        return;
    }
    // As ECMP does: the frames of a sender to a receiver stay in their order.
    uplinks_.SendByKey(uint64_t{packet.worker} << 32 | packet.id, packet, now);
}

AddingLeaf::AddingLeaf(const Schedule& schedule, Slots& slots, Picoseconds service,
                       Uplinks& uplinks)
    : AddingSwitch(schedule, slots, service), uplinks_(uplinks) {}

void AddingLeaf::Receive(const Packet& packet, uint32_t port, Picoseconds now) {
    if (!uplinks_.FromSpine(port)) {
        AddingSwitch::Receive(packet, port, now);
        return;
    }
    switch (packet.kind) {
        case Kind::SUM:
        case Kind::FEATURE:
            TakeFromSpine(packet, now);
            break;
        case Kind::ADVANCE:
            Advance(now);
            break;
        case Kind::NOTICE:
            TellAll(packet, now);
            break;
        default:
            break;
    }
}

Tally AddingLeaf::Count() const {
    Tally tally = AddingSwitch::Count();
    tally.sums -= sums_up_;
    tally.overflowed -= features_up_;
    return tally;
}

void AddingLeaf::Done(Picoseconds now) {
    uplinks_.SendTo(kBarrierSpine, {.kind = Kind::DONE}, now);
}

ProgramLeaf::ProgramLeaf(const Schedule& schedule, Slots& slots, Picoseconds service,
                         Uplinks& uplinks, const SumRoutes& routes)
    : AddingLeaf(schedule, slots, service, uplinks), routes_(routes) {}

/// Sums from a spine pass all slots by: see Passage in p4src/access.p4.
void ProgramLeaf::TakeFromSpine(const Packet& packet, Picoseconds now) {
    SendDown(packet, adder_.WorkerOf(packet.id), now);
}

void ProgramLeaf::Send(const Packet& packet, uint32_t worker, Picoseconds now) {
    const bool part = packet.kind == Kind::SUM || packet.kind == Kind::FEATURE;
    if (!part || !routes_.Crosses(packet.id)) {
        SendDown(packet, worker, now);
        return;
    }
    CountUp(packet.kind);
    uplinks_.SendTo(routes_.SpineOf(packet.id), packet, now);
}

void ProgramLeaf::Notice(const Packet& packet, Picoseconds now) {
    uplinks_.SendTo(kBarrierSpine, packet, now);
}

/// One contribution, one pass. If the sum is complete, it leaves in the same pass.
void CompletingLeaf::TakeFromSpine(const Packet& packet, Picoseconds now) {
    if (packet.ecn) {
        marked_.insert(packet.id);
    }
    ++adder_.tally.passes;
    Add(packet.id, packet, now);
}

void CompletingLeaf::Send(const Packet& packet, uint32_t worker, Picoseconds now) {
    Packet sent = packet;
    const bool part = packet.kind == Kind::SUM || packet.kind == Kind::FEATURE;
    sent.ecn = part && !marked_.empty() && marked_.erase(packet.id) != 0;
    if (uplinks_.Here(worker)) {
        SendDown(sent, worker, now);
        return;
    }
    CountUp(packet.kind);
    sent.worker = static_cast<uint16_t>(worker);
    uplinks_.SendByKey(packet.id, sent, now);
}

/// Its own workers get it as soon as in a star, and once.
void CompletingLeaf::Notice(const Packet& packet, Picoseconds now) {
    TellAll(packet, now);
    uplinks_.SendTo(kBarrierSpine, packet, now);
}

Spine::Spine(const LeafTier& tier, uint32_t number) : tier_(tier), number_(number) {}

void Spine::Receive(const Packet& packet, uint32_t, Picoseconds now) {
    switch (packet.kind) {
        case Kind::DONE:
            Collect(now);
            break;
        case Kind::NOTICE:
            Notice(packet, now);
            break;
        default:
            Take(packet, now);
    }
}

void Spine::Collect(Picoseconds now) {
    if (++done_ < down_.size()) {
        return;
    }
    done_ = 0;
    CheckComplete();
    for (Link* down : down_) {
        down->Send({.kind = Kind::ADVANCE}, now);
    }
}

void Spine::Notice(const Packet& notice, Picoseconds now) {
    for (Link* down : down_) {
        down->Send(notice, now);
    }
}

AddingSpine::AddingSpine(const LeafTier& tier, uint32_t number, Slots& slots)
    : Spine(tier, number), adder_(slots) {}

void AddingSpine::Take(const Packet& packet, Picoseconds now) {
    ++adder_.tally.passes;
    Packet leaving;
    if (adder_.Add(packet.id, packet, leaving)) {
        SendToLeafOf(adder_.WorkerOf(packet.id), leaving, now);
    }
}

void RelayingSpine::Notice(const Packet& notice, Picoseconds now) {
    for (uint32_t leaf = 0; leaf < down_.size(); ++leaf) {
        if (leaf != tier_.LeafOf(notice.worker)) {
            down_[leaf]->Send(notice, now);
        }
    }
}
