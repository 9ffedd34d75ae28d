// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The switch: forwards, or adds up; docs/protocol.md.
#ifndef SWITCHGNN_SWITCH_H
#define SWITCHGNN_SWITCH_H

#include "left_sums.h"
#include "link.h"
#include "loop.h"
#include "outlet.h"
#include "slots.h"

#include <optional>
#include <vector>

/// Ports to workers, and their queues.
class Switch : public Receiver
{
  public:
    explicit Switch(uint32_t workers)
        : meter(workers)
    {
    }

    void Attach(Link& down)
    {
        down_.push_back(&down);
    }

    QueueMeter meter;

  protected:
    std::vector<Link*> down_;
};

/// A switch that hands frames between hosts on.
class PlainSwitch : public Switch
{
  public:
    using Switch::Switch;

    void Receive(const Packet& packet, uint32_t, Picoseconds now) override
    {
        down_[packet.id]->Send(packet, now);
    }
};

class AddingSwitch : public Switch, public PassMaker
{
  public:
    AddingSwitch(uint32_t workers, const Schedule& schedule, Slots& slots, Picoseconds service);

    void Receive(const Packet& packet, uint32_t port, Picoseconds now) override;

    /// Keep in mind what has left: it may be lost, and asked for again.
    void ExpectLosses()
    {
        left_sums_.emplace();
    }

    uint64_t sums = 0;
    uint64_t sent_again = 0;
    uint64_t overflowed = 0;
    uint64_t passes = 0;
    uint64_t contributions = 0;

    const Loop& Recirculation() const
    {
        return *loop_;
    }

  private:
    bool Pass(Circling& circling, Picoseconds at) override;
    void Take(const Packet& packet, Picoseconds now);
    /// Add until the pass ends; tell whether something left.
    bool Contribute(Circling& circling, Picoseconds at);
    void Leave(const Packet& packet, uint32_t worker, Picoseconds at);
    void SendDown(const Packet& packet, uint32_t worker, Picoseconds now);
    void Recall(const Packet& packet, Picoseconds now);
    void Collect(Picoseconds now);
    void TellAll(Kind kind, Picoseconds now);

    const Schedule& schedule_;
    Slots& slots_;
    ns3::Ptr<Loop> loop_;
    ns3::Ptr<Outlet> outlet_;
    uint32_t done_ = 0;
    std::optional<LeftSums> left_sums_;
};

#endif
