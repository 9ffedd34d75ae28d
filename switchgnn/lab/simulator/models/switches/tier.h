// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The tier of leaves: which leaf a worker is attached to, and how it reaches spines.
#ifndef SWITCHGNN_TIER_H
#define SWITCHGNN_TIER_H

#include "network/link.h"

#include <vector>

/// The spine where the barrier is, and where notices are handed on.
constexpr uint32_t kBarrierSpine = 0;

/// Workers with numbers in a row are attached to the same leaf; each leaf has an equal share.
struct LeafTier
{
    uint32_t workers;
    uint32_t leaves;

    uint32_t LeafOf(uint32_t worker) const
    {
        return static_cast<uint32_t>(uint64_t{worker} * leaves / workers);
    }

    /// The first worker of a leaf; of the leaf behind the last, their number.
    uint32_t FirstOf(uint32_t leaf) const
    {
        return static_cast<uint32_t>((uint64_t{leaf} * workers + leaves - 1) / leaves);
    }
};

/// The links of a leaf to all spines.
class Uplinks
{
  public:
    Uplinks(const LeafTier& tier, uint32_t leaf)
        : leaf_(leaf),
          workers_(tier.workers),
          first_(tier.FirstOf(leaf)),
          behind_(tier.FirstOf(leaf + 1))
    {
    }

    void Attach(Link& up)
    {
        up_.push_back(&up);
    }

    uint32_t First() const
    {
        return first_;
    }

    /// Whether a worker is attached to this leaf.
    bool Here(uint32_t worker) const
    {
        return first_ <= worker && worker < behind_;
    }

    /// Whether this is the port of a link from a spine.
    bool FromSpine(uint32_t port) const
    {
        return port >= workers_;
    }

    void SendTo(uint32_t spine, const Packet& packet, Picoseconds now)
    {
        up_[spine]->Send(packet, now);
    }

    /// Send through the spine that a mixed key leads to: equal keys always take the same one.
    void SendByKey(uint64_t key, const Packet& packet, Picoseconds now)
    {
        up_[Mixed(key) % up_.size()]->Send(packet, now);
    }

    std::string Name() const
    {
        return "leaf " + std::to_string(leaf_);
    }

  private:
    /// The end of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
    static uint64_t Mixed(uint64_t key)
    {
        key += 0x9e3779b97f4a7c15;
        key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9;
        key = (key ^ (key >> 27)) * 0x94d049bb133111eb;
        return key ^ (key >> 31);
    }

    uint32_t leaf_;
    uint32_t workers_;
    uint32_t first_;
    uint32_t behind_;
    std::vector<Link*> up_;
};

#endif
