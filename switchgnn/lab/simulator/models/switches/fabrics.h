// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The fabrics: a star, and leaves and spines with a link from each to each.
#pragma once

#include "network/fabric.h"
#include "options.h"
#include "switches/switch.h"
#include "switches/tiers.h"

#include <memory>
#include <optional>

/// One switch that all workers have a link to.
class Star : public Fabric {
  public:
    /// schedule: null where the switch only hands copies on.
    Star(const Options& options, const Arrays& arrays, const Schedule* schedule);

    Receiver& EdgeOf(uint32_t) override { return *switch_; }
    void Attach(uint32_t, Link& down) override { switch_->Attach(down); }

    Tally Count() const override;

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
    LeafSpine(const Options& options, const Arrays& arrays, const Schedule* schedule, Trace& trace);

    Receiver& EdgeOf(uint32_t worker) override { return *leaves_[tier_.LeafOf(worker)]; }

    void Attach(uint32_t worker, Link& down) override {
        leaves_[tier_.LeafOf(worker)]->Attach(down);
    }

    Tally Count() const override;

  private:
    void AddPlainSwitches(const Options& options);
    /// Add the switches of the P4 program, whose spines complete sums.
    void AddProgram(const Options& options, const Arrays& arrays, const Schedule& schedule);
    /// Add the switches of the variant in which leaves complete sums.
    void AddVariant(const Options& options, const Arrays& arrays, const Schedule& schedule);
    Slots& AddSlots(const Options& options, const Arrays& arrays,
                    std::span<const uint16_t> expected);
    void Connect(const LinkOptions& options, Trace& trace);

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
