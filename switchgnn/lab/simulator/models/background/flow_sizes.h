// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// How large flows are: a distribution that is linear between the points of
// switchgnn/simulator/flow_sizes.py.
#ifndef SWITCHGNN_FLOW_SIZES_H
#define SWITCHGNN_FLOW_SIZES_H

#include "base/arrays.h"

#include <algorithm>
#include <cmath>

class FlowSizes
{
  public:
    explicit FlowSizes(const Arrays& arrays)
        : bytes_(arrays.Get<double>("flow_bytes")),
          share_(arrays.Get<double>("flow_share"))
    {
    }

    double Mean() const
    {
        double mean = 0;
        for (size_t i = 1; i < bytes_.size(); ++i)
        {
            mean += (bytes_[i] + bytes_[i - 1]) / 2 * (share_[i] - share_[i - 1]);
        }
        return mean;
    }

    /// The size below which such a share of the flows is; at least a byte.
    uint64_t At(double share) const
    {
        const auto above = std::upper_bound(share_.begin() + 1, share_.end() - 1, share);
        const size_t i = above - share_.begin();
        const double inside = (share - share_[i - 1]) / (share_[i] - share_[i - 1]);
        const double bytes = bytes_[i - 1] + inside * (bytes_[i] - bytes_[i - 1]);
        return std::max<uint64_t>(1, std::llround(bytes));
    }

  private:
    std::span<const double> bytes_;
    std::span<const double> share_;
};

#endif
