// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// A spine: hands on what leaves send each other. The first has the barrier.
#ifndef SWITCHGNN_SPINE_H
#define SWITCHGNN_SPINE_H

#include "switches/tier.h"

class Spine : public Receiver
{
  public:
    /// host_based: packets are frames between hosts, or else sums and features.
    Spine(const LeafTier& tier, uint32_t number, bool host_based);

    /// Attach the link down to a leaf; in the order of leaves.
    void Attach(Link& down)
    {
        down_.push_back(&down);
    }

    void Receive(const Packet& packet, uint32_t port, Picoseconds now) override;

    std::string Name(uint32_t) const override
    {
        return "spine " + std::to_string(number_);
    }

  private:
    void Collect(Picoseconds now);
    /// Hand a worker's notice on to the leaves that it does not hang on.
    void TellOthers(const Packet& notice, Picoseconds now);

    LeafTier tier_;
    uint32_t number_;
    bool host_based_;
    std::vector<Link*> down_;
    uint32_t done_ = 0;
};

#endif
