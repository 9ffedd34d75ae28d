// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// A leaf of the variant in which leaves complete sums. The P4 program does not implement it.
#ifndef SWITCHGNN_COMPLETING_LEAF_H
#define SWITCHGNN_COMPLETING_LEAF_H

#include "switches/leaf.h"

#include <unordered_set>

/// Adds for its own workers and for those of other leaves. A sum for one of those is complete when
/// everything has been added that comes from here; it goes on to be added at the worker's leaf.
class CompletingLeaf : public AddingLeaf
{
  public:
    using AddingLeaf::AddingLeaf;

  private:
    void TakeFromSpine(const Packet& packet, Picoseconds now) override;
    void Send(const Packet& packet, uint32_t worker, Picoseconds now) override;
    void Notice(const Packet& packet, Picoseconds now) override;

    // Rows to which something marked was added: so is what leaves.
    std::unordered_set<uint32_t> marked_;
};

#endif
