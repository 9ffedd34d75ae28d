// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "switches/fabrics.h"

#include "switches/tiers.h"

#include <algorithm>

namespace {
using Counts = std::vector<uint16_t>;

/// The contributions of the workers of a leaf to each row.
Counts ContributionsFrom(uint32_t leaf, const LeafTier& tier, const Schedule& schedule,
                         size_t rows) {
    Counts here(rows, 0);
    const auto count = [&](uint64_t packet) {
        const uint16_t added = schedule.CountOf(packet);
        for (const uint32_t word : schedule.ContributionsOf(packet)) {
            here[word & ~Schedule::kLastOfPass] += added;
        }
    };
    for (uint32_t sender = tier.FirstOf(leaf); sender < tier.FirstOf(leaf + 1); ++sender) {
        for (uint32_t block = 0; block < schedule.blocks; ++block) {
            const Schedule::Share share = schedule.ShareOf(sender, block);
            for (uint64_t i = 0; i < share.packets; i += schedule.together) {
                count(share.first_packet + i);
            }
        }
    }
    return here;
}

void Include(Tally& all, const Tally& one) {
    all.sums += one.sums;
    all.overflowed += one.overflowed;
    all.barriers = std::max(all.barriers, one.barriers);
    all.passes += one.passes;
    all.contributions += one.contributions;
    all.loop_passes += one.loop_passes;
    all.max_loop_queue = std::max(all.max_loop_queue, one.max_loop_queue);
    all.slots = std::max(all.slots, one.slots);
    all.max_slots = std::max(all.max_slots, one.max_slots);
}
}  // namespace

Star::Star(const Options& options, const Arrays& arrays, const Schedule* schedule)
    : Fabric(options.workers) {
    if (!schedule) {
        switch_ = std::make_unique<PlainSwitch>();
        return;
    }
    slots_ = std::make_unique<Slots>(arrays, options.pools, options.together);
    auto adding = std::make_unique<AddingSwitch>(*schedule, *slots_, options.pass);
    adding_ = adding.get();
    if (options.pace.losses) {
        adding_->ExpectLosses();
    }
    switch_ = std::move(adding);
}

Tally Star::Count() const {
    return adding_ ? adding_->Count() : Tally{};
}

LeafSpine::LeafSpine(const Options& options, const Arrays& arrays, const Schedule* schedule,
                     Trace& trace)
    : Fabric(options.workers + size_t{2} * options.leaves * options.spines),
      tier_{options.workers, options.leaves} {
    for (uint32_t leaf = 0; leaf < options.leaves; ++leaf) {
        uplinks_.push_back(std::make_unique<Uplinks>(tier_, leaf));
    }
    if (!schedule) {
        AddPlainSwitches(options);
    } else if (options.completion == Completion::SPINE) {
        AddProgram(options, arrays, *schedule);
    } else {
        AddVariant(options, arrays, *schedule);
    }
    Connect(options.down, trace);
}

void LeafSpine::AddPlainSwitches(const Options& options) {
    for (const auto& uplinks : uplinks_) {
        leaves_.push_back(std::make_unique<PlainLeaf>(*uplinks));
    }
    for (uint32_t spine = 0; spine < options.spines; ++spine) {
        spines_.push_back(std::make_unique<PlainSpine>(tier_, spine));
    }
}

void LeafSpine::AddProgram(const Options& options, const Arrays& arrays, const Schedule& schedule) {
    const auto expected = arrays.Get<uint16_t>("row_expected");
    const auto worker = arrays.Get<uint8_t>("row_worker");
    std::vector<bool> crosses(expected.size());
    std::vector<Counts> from;
    for (uint32_t leaf = 0; leaf < options.leaves; ++leaf) {
        from.push_back(ContributionsFrom(leaf, tier_, schedule, expected.size()));
    }
    for (size_t row = 0; row < crosses.size(); ++row) {
        crosses[row] = from[tier_.LeafOf(worker[row])][row] != expected[row];
    }
    routes_.emplace(std::move(crosses), arrays.Get<uint32_t>("row_vertex"), options.spines,
                    options.together);
    for (uint32_t leaf = 0; leaf < options.leaves; ++leaf) {
        Slots& slots = AddSlots(options, arrays, from[leaf]);
        auto adding =
            std::make_unique<ProgramLeaf>(schedule, slots, options.pass, *uplinks_[leaf], *routes_);
        adding_leaves_.push_back(adding.get());
        leaves_.push_back(std::move(adding));
    }
    for (uint32_t spine = 0; spine < options.spines; ++spine) {
        Slots& slots = AddSlots(options, arrays, expected);
        auto adding = std::make_unique<AddingSpine>(tier_, spine, slots);
        adding_spines_.push_back(adding.get());
        spines_.push_back(std::move(adding));
    }
}

void LeafSpine::AddVariant(const Options& options, const Arrays& arrays, const Schedule& schedule) {
    const auto expected = arrays.Get<uint16_t>("row_expected");
    const auto worker = arrays.Get<uint8_t>("row_worker");
    for (uint32_t leaf = 0; leaf < options.leaves; ++leaf) {
        Counts here = ContributionsFrom(leaf, tier_, schedule, expected.size());
        for (size_t row = 0; row < here.size(); ++row) {
            // All of the row's, some of which are added elsewhere.
            if (tier_.LeafOf(worker[row]) == leaf) {
                here[row] = expected[row];
            }
        }
        Slots& slots = AddSlots(options, arrays, here);
        auto adding =
            std::make_unique<CompletingLeaf>(schedule, slots, options.pass, *uplinks_[leaf]);
        adding_leaves_.push_back(adding.get());
        leaves_.push_back(std::move(adding));
    }
    for (uint32_t spine = 0; spine < options.spines; ++spine) {
        spines_.push_back(std::make_unique<RelayingSpine>(tier_, spine));
    }
}

Slots& LeafSpine::AddSlots(const Options& options, const Arrays& arrays,
                           std::span<const uint16_t> expected) {
    slots_.push_back(std::make_unique<Slots>(arrays, expected, options.pools, options.together));
    return *slots_.back();
}

void LeafSpine::Connect(const LinkOptions& options, Trace& trace) {
    const size_t links = leaves_.size() * spines_.size();
    for (size_t leaf = 0; leaf < leaves_.size(); ++leaf) {
        for (size_t spine = 0; spine < spines_.size(); ++spine) {
            const auto port = static_cast<uint32_t>(tier_.workers + up_.size());
            const auto back = static_cast<uint32_t>(port + links);
            up_.push_back(ns3::Create<Link>(options, *spines_[spine], port, &meter, trace));
            down_.push_back(ns3::Create<Link>(options, *leaves_[leaf], back, &meter, trace));
            uplinks_[leaf]->Attach(*up_.back());
            spines_[spine]->Attach(*down_.back());
        }
    }
}

Tally LeafSpine::Count() const {
    Tally all;
    for (const AddingLeaf* leaf : adding_leaves_) {
        Include(all, leaf->Count());
    }
    for (const AddingSpine* spine : adding_spines_) {
        Include(all, spine->Count());
    }
    return all;
}
