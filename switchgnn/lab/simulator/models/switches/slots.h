// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The aggregators: who has one, and when a sum is complete.
#ifndef SWITCHGNN_SLOTS_H
#define SWITCHGNN_SLOTS_H

#include "base/arrays.h"
#include "base/units.h"

#include <vector>

/// What becomes of a contribution.
enum class Fate
{
    KEPT,
    COMPLETED,
    OVERFLOWED,
};

/// A row is a destination in a block. With a plan each has a slot of its own; with the strawman
/// they compete for those of their pool, first come, first served.
class Slots
{
  public:
    /// limits: the slots of each pool; empty with a plan.
    /// together: rows that share a slot, the fragments of a destination.
    Slots(const Arrays& arrays, const std::vector<uint32_t>& limits, uint32_t together);
    /// expected: the contributions to each row, in place of those that the arrays have.
    Slots(const Arrays& arrays,
          std::span<const uint16_t> expected,
          const std::vector<uint32_t>& limits,
          uint32_t together);

    /// Add to a row; `total` becomes the contributions in what leaves.
    Fate Add(uint32_t row, uint16_t count, uint16_t& total);

    uint32_t WorkerOf(uint32_t row) const
    {
        return rows_[row].worker;
    }

    /// Slots that hold an unfinished sum.
    uint64_t InUse() const
    {
        return in_use_;
    }

    uint64_t MostInUse() const
    {
        return most_in_use_;
    }

  private:
    struct Row
    {
        uint16_t expected;
        uint16_t seen;
        uint16_t added;
        uint8_t worker;
        uint8_t pool;
    };

    /// A sum begins: the slot is taken with the first one in it.
    void Open(uint32_t row);
    /// A sum is complete: the slot is free after the last one in it.
    void Close(uint32_t row);
    Fate AddPlanned(uint32_t row, uint16_t count, uint16_t& total);
    Fate AddPooled(uint32_t row, uint16_t count, uint16_t& total);

    uint32_t together_;
    std::vector<Row> rows_;
    // Unfinished sums in each slot.
    std::vector<uint8_t> open_;
    std::vector<uint32_t> free_;
    uint64_t in_use_ = 0;
    uint64_t most_in_use_ = 0;
};

#endif
