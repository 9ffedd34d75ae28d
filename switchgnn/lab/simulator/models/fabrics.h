// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The network between the workers: a star, or leaves and spines with a link from each to each.
#pragma once

#include "link.h"
#include "options.h"
#include "switch.h"
#include "tiers.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

class Fabric {
  public:
    using Links = std::vector<ns3::Ptr<Link>>;

    /// ports: of all switches, to workers and to each other.
    explicit Fabric(size_t ports) : meter(ports) {}

    virtual ~Fabric() = default;
    /// The switch that a worker has its link to.
    virtual Receiver& EdgeOf(uint32_t worker) = 0;
    /// Attach the link down to a worker; in the order of workers.
    virtual void Attach(uint32_t worker, Link& down) = 0;
    virtual Tally Count() const = 0;

    /// Links from leaves to spines and back, leaf by leaf; none where there is one switch.
    const Links& Up() const { return up_; }
    const Links& Down() const { return down_; }
    /// What waits in the queues of all switches.
    QueueMeter meter;

  protected:
    Links up_;
    Links down_;
};

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

/// One switch that all workers have a link to.
class Star : public Fabric {
  public:
    /// schedule: null where the switch only hands copies on.
    Star(const Options& options, const Arrays& arrays, const Schedule* schedule)
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

    Receiver& EdgeOf(uint32_t) override { return *switch_; }
    void Attach(uint32_t, Link& down) override { switch_->Attach(down); }

    Tally Count() const override { return adding_ ? adding_->Count() : Tally{}; }

  private:
    std::unique_ptr<Slots> slots_;
    std::unique_ptr<Switch> switch_;
    // The same as switch_, if it adds.
    AddingSwitch* adding_ = nullptr;
};

/// Leaves, spines, and a link from each to each. Ports are numbered: those to workers, those of
/// leaf l to spine s (workers + l * spines + s), and as many back.
class LeafSpine : public Fabric {
  public:
    /// schedule: null where the switches only hand copies on.
    LeafSpine(const Options& options, const Arrays& arrays, const Schedule* schedule, Trace& trace)
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

    Receiver& EdgeOf(uint32_t worker) override { return *leaves_[tier_.LeafOf(worker)]; }

    void Attach(uint32_t worker, Link& down) override {
        leaves_[tier_.LeafOf(worker)]->Attach(down);
    }

    Tally Count() const override {
        Tally all;
        for (const AddingLeaf* leaf : adding_leaves_) {
            Include(all, leaf->Count());
        }
        for (const AddingSpine* spine : adding_spines_) {
            Include(all, spine->Count());
        }
        return all;
    }

  private:
    void AddPlainSwitches(const Options& options) {
        for (const auto& uplinks : uplinks_) {
            leaves_.push_back(std::make_unique<PlainLeaf>(*uplinks));
        }
        for (uint32_t spine = 0; spine < options.spines; ++spine) {
            spines_.push_back(std::make_unique<PlainSpine>(tier_, spine));
        }
    }

    /// Add the switches of the P4 program, whose spines complete sums.
    void AddProgram(const Options& options, const Arrays& arrays, const Schedule& schedule) {
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
            auto adding = std::make_unique<ProgramLeaf>(schedule, slots, options.pass,
                                                        *uplinks_[leaf], *routes_);
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

    /// Add the switches of the variant in which leaves complete sums.
    void AddVariant(const Options& options, const Arrays& arrays, const Schedule& schedule) {
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

    Slots& AddSlots(const Options& options, const Arrays& arrays,
                    std::span<const uint16_t> expected) {
        slots_.push_back(
            std::make_unique<Slots>(arrays, expected, options.pools, options.together));
        return *slots_.back();
    }

    void Connect(const LinkOptions& options, Trace& trace) {
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

    LeafTier tier_;
    std::optional<SumRoutes> routes_;
    std::vector<std::unique_ptr<Uplinks>> uplinks_;
    std::vector<std::unique_ptr<Slots>> slots_;
    std::vector<std::unique_ptr<Switch>> leaves_;
    std::vector<std::unique_ptr<Spine>> spines_;
    // Those of the leaves and of the spines that add.
    std::vector<const AddingLeaf*> adding_leaves_;
    std::vector<const AddingSpine*> adding_spines_;
};
