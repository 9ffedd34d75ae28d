// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// A leaf: the switch that the workers of a rack have their links to.
#ifndef SWITCHGNN_LEAF_H
#define SWITCHGNN_LEAF_H

#include "switches/tier.h"
#include "switches/switch.h"

#include <unordered_set>

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

/// Adds for its own workers and for those of other leaves. A sum for one of those is complete when
/// all has been added that comes from here, and goes on to be added there.
class AddingLeaf : public AddingSwitch
{
  public:
    AddingLeaf(const Schedule& schedule, Slots& slots, Picoseconds service, Uplinks& uplinks);

    void Receive(const Packet& packet, uint32_t port, Picoseconds now) override;

    /// Without what has gone up: it is not at its end.
    Tally Count() const override;

    std::string Name(uint32_t) const override
    {
        return uplinks_.Name();
    }

  private:
    void Send(const Packet& packet, uint32_t worker, Picoseconds now) override;
    void Done(Picoseconds now) override;
    void Notice(const Packet& packet, Picoseconds now) override;

    uint32_t WorkerAt(uint32_t place) const override
    {
        return uplinks_.First() + place;
    }

    void Merge(const Packet& packet, Picoseconds now);

    Uplinks& uplinks_;
    uint64_t sums_up_ = 0;
    uint64_t features_up_ = 0;
    // Rows to which something marked was added: so is what leaves.
    std::unordered_set<uint32_t> marked_;
};

#endif
