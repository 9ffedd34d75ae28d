// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Which switch completes the sum of a row, as switchgnn/planner/plan/leaf_spine.py has it.
#ifndef SWITCHGNN_SUM_ROUTES_H
#define SWITCHGNN_SUM_ROUTES_H

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

class SumRoutes
{
  public:
    /// crosses: of each row of the plan, whether something is added to it behind another leaf than
    /// that of its worker.
    /// vertex: of each row of the plan, the destination.
    /// together: fragments of a row of the plan, each of which is a row of its own.
    SumRoutes(std::vector<bool> crosses,
              std::span<const uint32_t> vertex,
              uint32_t spines,
              uint32_t together)
        : crosses_(std::move(crosses)),
          vertex_(vertex),
          spines_(spines),
          together_(together)
    {
    }

    /// Whether a spine completes the sum, or else the leaf of its worker.
    bool Crosses(uint32_t row) const
    {
        return crosses_[row / together_];
    }

    /// Spines take turns by the number of the destination.
    uint32_t SpineOf(uint32_t row) const
    {
        return vertex_[row / together_] % spines_;
    }

  private:
    std::vector<bool> crosses_;
    std::span<const uint32_t> vertex_;
    uint32_t spines_;
    uint32_t together_;
};

#endif
