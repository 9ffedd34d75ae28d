// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// A switch that workers have their links to: it forwards, or adds up; docs/protocol.md.
#ifndef SWITCHGNN_SWITCH_H
#define SWITCHGNN_SWITCH_H

#include "network/fabric.h"
#include "network/link.h"
#include "network/outlet.h"
#include "switches/adder.h"
#include "switches/left_sums.h"
#include "switches/loop.h"

#include <optional>
#include <vector>

/// Ports to workers.
class Switch : public Receiver
{
  public:
    void Attach(Link& down)
    {
        down_.push_back(&down);
    }

  protected:
    std::vector<Link*> down_;
};

/// A switch that hands frames between hosts on.
class PlainSwitch : public Switch
{
  public:
    void Receive(const Packet& packet, uint32_t, Picoseconds now) override
    {
        down_[packet.id]->Send(packet, now);
    }
};

/// A switch that adds what the workers attached to it send, with a loop for further passes.
class AddingSwitch : public Switch
{
  public:
    AddingSwitch(const Schedule& schedule, Slots& slots, Picoseconds service);

    void Receive(const Packet& packet, uint32_t port, Picoseconds now) override;

    /// Keep in mind what has left: it may be lost, and asked for again.
    void ExpectLosses()
    {
        left_sums_.emplace();
    }

    virtual Tally Count() const;

  protected:
    /// Send a packet on its way to a worker, or, for a sum, on the way to the worker that gets it.
    virtual void Send(const Packet& packet, uint32_t worker, Picoseconds now);

    /// All workers that are attached here are done with a block.
    virtual void Done(Picoseconds now);

    /// A worker has got a marked packet.
    virtual void Notice(const Packet& packet, Picoseconds now)
    {
        TellAll(packet, now);
    }

    /// Add what a packet carries to a row; tell whether something left.
    bool Add(uint32_t row, const Packet& packet, Picoseconds at)
    {
        Packet leaving;
        if (!adder_.Add(row, packet, leaving))
        {
            return false;
        }
        Leave(leaving, adder_.WorkerOf(row), at);
        return true;
    }

    /// Send now, or when the loop lets it go.
    void Leave(const Packet& packet, uint32_t worker, Picoseconds at);
    /// Let the next block begin.
    void Advance(Picoseconds now);
    /// The number that a worker has whose link was attached in this place.
    virtual uint32_t WorkerAt(uint32_t place) const
    {
        return place;
    }

    /// Tell all workers that are attached here.
    void TellAll(const Packet& told, Picoseconds now);

    Adder adder_;

  private:
    /// Make a pass; tell whether another one is needed.
    bool Pass(Circling& circling, Picoseconds at);
    void Take(const Packet& packet, Picoseconds now);
    /// Add until the pass ends; tell whether something left.
    bool Contribute(Circling& circling, Picoseconds at);
    void Recall(const Packet& packet, Picoseconds now);
    void Collect(Picoseconds now);

    const Schedule& schedule_;
    ns3::Ptr<Loop> loop_;
    ns3::Ptr<Outlet> outlet_;
    uint32_t done_ = 0;
    std::optional<LeftSums> left_sums_;
};

#endif
