// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The sums that are still in their slots, for workers that did not get theirs.
#ifndef SWITCHGNN_LEFT_SUMS_H
#define SWITCHGNN_LEFT_SUMS_H

#include <algorithm>
#include <cstdint>
#include <vector>

/// A slot keeps its sum until the next block, or fragment, overwrites it.
class LeftSums
{
  public:
    /// Note that a sum has left, and the number of contributions in it.
    void Note(uint32_t row, uint16_t count)
    {
        if (row >= counts_.size())
        {
            counts_.resize(std::max<size_t>(row + 1, 2 * counts_.size()));
        }
        counts_[row] = count;
    }

    /// 0: it has not left.
    uint16_t CountOf(uint32_t row) const
    {
        return row < counts_.size() ? counts_[row] : 0;
    }

    void Clear()
    {
        std::fill(counts_.begin(), counts_.end(), 0);
    }

  private:
    std::vector<uint16_t> counts_;
};

#endif
