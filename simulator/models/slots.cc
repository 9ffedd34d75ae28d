// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "slots.h"

#include <algorithm>

Slots::Slots(const Arrays& arrays, const std::vector<uint32_t>& limits)
    : Slots(arrays, arrays.Get<uint16_t>("row_expected"), limits)
{
}

Slots::Slots(const Arrays& arrays,
             std::span<const uint16_t> expected,
             const std::vector<uint32_t>& limits)
    : free_(limits)
{
    const auto worker = arrays.Get<uint8_t>("row_worker");
    const auto bank = arrays.Get<uint8_t>("row_bank");
    rows_.resize(expected.size());
    for (size_t i = 0; i < rows_.size(); ++i)
    {
        const uint8_t pool = limits.empty() ? 0 : bank[i] % limits.size();
        rows_[i] = {expected[i], 0, 0, worker[i], pool};
    }
}

Fate
Slots::Add(uint32_t row, uint16_t count, uint16_t& total)
{
    return free_.empty() ? AddPlanned(rows_[row], count, total)
                         : AddPooled(rows_[row], count, total);
}

void
Slots::Occupy()
{
    ++in_use_;
    most_in_use_ = std::max(most_in_use_, in_use_);
}

Fate
Slots::AddPlanned(Row& row, uint16_t count, uint16_t& total)
{
    if (row.added == 0)
    {
        Occupy();
    }
    row.added += count;
    if (row.added < row.expected)
    {
        return Fate::KEPT;
    }
    if (row.added > row.expected)
    {
        throw SimulationError("A slot got more contributions than it expects: the plan is wrong.");
    }
    total = row.added;
    row.added = 0;
    --in_use_;
    return Fate::COMPLETED;
}

/// As p4src/strawman/pooled_aggregator.p4.
Fate
Slots::AddPooled(Row& row, uint16_t count, uint16_t& total)
{
    row.seen += count;
    const bool last = row.seen == row.expected;
    if (last)
    {
        row.seen = 0;
    }
    if (row.added != 0)
    {
        row.added += count;
        if (!last)
        {
            return Fate::KEPT;
        }
        total = row.added;
        row.added = 0;
        ++free_[row.pool];
        --in_use_;
        return Fate::COMPLETED;
    }
    total = count;
    if (free_[row.pool] == 0)
    {
        return Fate::OVERFLOWED;
    }
    if (last)
    {
        // It would give its slot back at once.
        return Fate::COMPLETED;
    }
    row.added = count;
    --free_[row.pool];
    Occupy();
    return Fate::KEPT;
}
