// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// A spine: a switch whose links all lead to leaves. The first spine has the barrier.
#ifndef SWITCHGNN_SPINE_H
#define SWITCHGNN_SPINE_H

#include "switches/adder.h"
#include "switches/tier.h"

/// What all spines have in common: reports of leaves, and notices.
class Spine : public Receiver
{
  public:
    Spine(const LeafTier& tier, uint32_t number);

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

  protected:
    /// A sum, or a frame between hosts, has come from a leaf.
    virtual void Take(const Packet& packet, Picoseconds now) = 0;
    /// A leaf says that a worker has got a marked packet.
    virtual void Notice(const Packet& notice, Picoseconds now);

    /// All leaves have reported: refuse to go on if something is missing here.
    virtual void CheckComplete() const
    {
    }

    void SendToLeafOf(uint32_t worker, const Packet& packet, Picoseconds now)
    {
        down_[tier_.LeafOf(worker)]->Send(packet, now);
    }

    LeafTier tier_;
    std::vector<Link*> down_;

  private:
    void Collect(Picoseconds now);

    uint32_t number_;
    uint32_t done_ = 0;
};

/// Hands on frames between hosts.
class PlainSpine : public Spine
{
  public:
    using Spine::Spine;

  private:
    void Take(const Packet& packet, Picoseconds now) override
    {
        SendToLeafOf(packet.id, packet, now);
    }
};

/// A spine as the P4 program has it: adds up the parts of leaves, each of which is one contribution
/// in one pass. The sum that is complete leaves for the leaf of its worker in the same pass.
class AddingSpine : public Spine
{
  public:
    AddingSpine(const LeafTier& tier, uint32_t number, Slots& slots);

    Tally Count() const
    {
        return adder_.Count();
    }

  private:
    void Take(const Packet& packet, Picoseconds now) override;

    void CheckComplete() const override
    {
        adder_.CheckComplete();
    }

    Adder adder_;
};

/// A spine of the variant in which leaves complete sums: hands on what they send each other.
class RelayingSpine : public Spine
{
  public:
    using Spine::Spine;

  private:
    void Take(const Packet& packet, Picoseconds now) override
    {
        SendToLeafOf(packet.worker, packet, now);
    }

    /// Hand a worker's notice on to the leaves that it is not attached to.
    void Notice(const Packet& notice, Picoseconds now) override;
};

#endif
