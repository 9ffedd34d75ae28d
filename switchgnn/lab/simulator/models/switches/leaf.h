// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// A leaf: the switch that some of the workers have their links to.
#ifndef SWITCHGNN_LEAF_H
#define SWITCHGNN_LEAF_H

#include "switches/sum_routes.h"
#include "switches/switch.h"
#include "switches/tier.h"

/// Hands frames between hosts on: down to a host of its own, or up.
class PlainLeaf : public Switch
{
  public:
    explicit PlainLeaf(Uplinks& uplinks)
        : uplinks_(uplinks)
    {
    }

    void Receive(const Packet& packet, uint32_t port, Picoseconds now) override;

    std::string Name(uint32_t) const override
    {
        return uplinks_.Name();
    }

  private:
    Uplinks& uplinks_;
};

/// What leaves that add have in common: they add what their own workers contribute, and report to
/// the first spine when all of these are done.
class AddingLeaf : public AddingSwitch
{
  public:
    AddingLeaf(const Schedule& schedule, Slots& slots, Picoseconds service, Uplinks& uplinks);

    void Receive(const Packet& packet, uint32_t port, Picoseconds now) override;

    /// Without what has gone up: it has not reached its worker.
    Tally Count() const override;

    std::string Name(uint32_t) const override
    {
        return uplinks_.Name();
    }

  protected:
    /// A sum, or a feature that found no slot, has come from a spine.
    virtual void TakeFromSpine(const Packet& packet, Picoseconds now) = 0;

    void SendDown(const Packet& packet, uint32_t worker, Picoseconds now)
    {
        down_[worker - uplinks_.First()]->Send(packet, now);
    }

    void CountUp(Kind kind)
    {
        ++(kind == Kind::SUM ? sums_up_ : features_up_);
    }

    Uplinks& uplinks_;

  private:
    void Done(Picoseconds now) override;

    uint32_t WorkerAt(uint32_t place) const override
    {
        return uplinks_.First() + place;
    }

    uint64_t sums_up_ = 0;
    uint64_t features_up_ = 0;
};

/// A leaf as the P4 program has it. A sum whose contributions and whose worker are all behind this
/// leaf is complete here; of any other it sends its part to the spine that completes the sum.
class ProgramLeaf : public AddingLeaf
{
  public:
    ProgramLeaf(const Schedule& schedule,
                Slots& slots,
                Picoseconds service,
                Uplinks& uplinks,
                const SumRoutes& routes);

  private:
    void TakeFromSpine(const Packet& packet, Picoseconds now) override;
    void Send(const Packet& packet, uint32_t worker, Picoseconds now) override;
    /// It comes back from the first spine, for all workers: see p4src/notice.p4.
    void Notice(const Packet& packet, Picoseconds now) override;

    const SumRoutes& routes_;
};

#endif
