// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "switches/leaf_spine.h"

#include <algorithm>

namespace
{
/// The contributions to each row at a leaf. Where its worker hangs these are all of the row's, some
/// of them added elsewhere; at other leaves, those that come from there.
std::vector<uint16_t>
ExpectedAt(uint32_t leaf, const LeafTier& tier, const Arrays& arrays, const Schedule& schedule)
{
    const auto expected = arrays.Get<uint16_t>("row_expected");
    const auto worker = arrays.Get<uint8_t>("row_worker");
    std::vector<uint16_t> here(expected.size(), 0);
    const auto count = [&](uint64_t packet) {
        const uint16_t added = schedule.CountOf(packet);
        for (const uint32_t word : schedule.ContributionsOf(packet))
        {
            here[word & ~Schedule::kLastOfPass] += added;
        }
    };
    for (uint32_t sender = tier.FirstOf(leaf); sender < tier.FirstOf(leaf + 1); ++sender)
    {
        for (uint32_t block = 0; block < schedule.blocks; ++block)
        {
            const Schedule::Share share = schedule.ShareOf(sender, block);
            for (uint64_t i = 0; i < share.packets; i += schedule.together)
            {
                count(share.first_packet + i);
            }
        }
    }
    for (size_t row = 0; row < here.size(); ++row)
    {
        if (tier.LeafOf(worker[row]) == leaf)
        {
            here[row] = expected[row];
        }
    }
    return here;
}
} // namespace

LeafSpine::LeafSpine(const Options& options,
                     const Arrays& arrays,
                     const Schedule* schedule,
                     Trace& trace)
    : Fabric(options.workers + size_t{2} * options.leaves * options.spines),
      tier_{options.workers, options.leaves}
{
    for (uint32_t leaf = 0; leaf < options.leaves; ++leaf)
    {
        uplinks_.push_back(std::make_unique<Uplinks>(tier_, leaf));
        AddLeaf(options, arrays, schedule, *uplinks_.back());
    }
    for (uint32_t spine = 0; spine < options.spines; ++spine)
    {
        spines_.push_back(std::make_unique<Spine>(tier_, spine, options.host_based));
    }
    Connect(options.down, trace);
}

void
LeafSpine::AddLeaf(const Options& options,
                   const Arrays& arrays,
                   const Schedule* schedule,
                   Uplinks& uplinks)
{
    if (!schedule)
    {
        leaves_.push_back(std::make_unique<PlainLeaf>(uplinks));
        return;
    }
    const auto leaf = static_cast<uint32_t>(leaves_.size());
    const auto expected = ExpectedAt(leaf, tier_, arrays, *schedule);
    slots_.push_back(
        std::make_unique<Slots>(arrays, expected, options.pools, options.together));
    auto adding =
        std::make_unique<AddingLeaf>(*schedule, *slots_.back(), options.pass, uplinks);
    adding_.push_back(adding.get());
    leaves_.push_back(std::move(adding));
}

void
LeafSpine::Connect(const LinkOptions& options, Trace& trace)
{
    const size_t links = leaves_.size() * spines_.size();
    for (size_t leaf = 0; leaf < leaves_.size(); ++leaf)
    {
        for (size_t spine = 0; spine < spines_.size(); ++spine)
        {
            const auto port = static_cast<uint32_t>(tier_.workers + up_.size());
            const auto back = static_cast<uint32_t>(port + links);
            up_.push_back(ns3::Create<Link>(options, *spines_[spine], port, &meter, trace));
            down_.push_back(ns3::Create<Link>(options, *leaves_[leaf], back, &meter, trace));
            uplinks_[leaf]->Attach(*up_.back());
            spines_[spine]->Attach(*down_.back());
        }
    }
}

Tally
LeafSpine::Count() const
{
    Tally all;
    for (const AddingLeaf* leaf : adding_)
    {
        const Tally one = leaf->Count();
        all.sums += one.sums;
        all.overflowed += one.overflowed;
        all.passes += one.passes;
        all.contributions += one.contributions;
        all.loop_passes += one.loop_passes;
        all.max_loop_queue = std::max(all.max_loop_queue, one.max_loop_queue);
        all.slots = std::max(all.slots, one.slots);
        all.max_slots = std::max(all.max_slots, one.max_slots);
    }
    return all;
}
