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
    struct Left
    {
        /// Contributions in the sum; 0: it has not left.
        uint16_t count = 0;
        /// Of its frame.
        uint16_t bytes = 0;
    };

    /// Note that a sum has left.
    void Note(uint32_t row, Left left)
    {
        if (row >= left_.size())
        {
            left_.resize(std::max<size_t>(row + 1, 2 * left_.size()));
        }
        left_[row] = left;
    }

    Left Of(uint32_t row) const
    {
        return row < left_.size() ? left_[row] : Left{};
    }

    void Clear()
    {
        std::fill(left_.begin(), left_.end(), Left{});
    }

  private:
    std::vector<Left> left_;
};

#endif
