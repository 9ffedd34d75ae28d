// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "switches/slots.h"

#include <algorithm>

Slots::Slots(const Arrays& arrays, const std::vector<uint32_t>& limits, uint32_t together)
    : Slots(arrays, arrays.Get<uint16_t>("row_expected"), limits, together) {}

Slots::Slots(const Arrays& arrays, std::span<const uint16_t> expected,
             const std::vector<uint32_t>& limits, uint32_t together)
    : together_(together), free_(limits) {
    const auto worker = arrays.Get<uint8_t>("row_worker");
    const auto bank = arrays.Get<uint8_t>("row_bank");
    rows_.resize(expected.size() * together);
    open_.resize(expected.size());
    for (size_t i = 0; i < rows_.size(); ++i) {
        const size_t planned = i / together;
        const uint8_t pool = limits.empty() ? 0 : bank[planned] % limits.size();
        rows_[i] = {expected[planned], 0, 0, worker[planned], pool};
    }
}

Fate Slots::Add(uint32_t row, uint16_t count, uint16_t& total) {
    return free_.empty() ? AddPlanned(row, count, total) : AddPooled(row, count, total);
}

void Slots::Open(uint32_t row) {
    if (open_[row / together_]++ != 0) {
        return;
    }
    ++in_use_;
    most_in_use_ = std::max(most_in_use_, in_use_);
    if (!free_.empty()) {
        --free_[rows_[row].pool];
    }
}

void Slots::Close(uint32_t row) {
    if (--open_[row / together_] != 0) {
        return;
    }
    --in_use_;
    if (!free_.empty()) {
        ++free_[rows_[row].pool];
    }
}

Fate Slots::AddPlanned(uint32_t at, uint16_t count, uint16_t& total) {
    Row& row = rows_[at];
    if (row.added == 0) {
        Open(at);
    }
    row.added += count;
    if (row.added < row.expected) {
        return Fate::KEPT;
    }
    if (row.added > row.expected) {
        throw SimulationError("A slot got more contributions than it expects: the plan is wrong.");
    }
    total = row.added;
    row.added = 0;
    Close(at);
    return Fate::COMPLETED;
}

/// As p4src/strawman/banks.p4.
Fate Slots::AddPooled(uint32_t at, uint16_t count, uint16_t& total) {
    Row& row = rows_[at];
    row.seen += count;
    const bool last = row.seen == row.expected;
    if (last) {
        row.seen = 0;
    }
    if (row.added != 0) {
        row.added += count;
        if (!last) {
            return Fate::KEPT;
        }
        total = row.added;
        row.added = 0;
        Close(at);
        return Fate::COMPLETED;
    }
    total = count;
    if (open_[at / together_] == 0 && free_[row.pool] == 0) {
        return Fate::OVERFLOWED;
    }
    if (last) {
        // It would give its slot back at once.
        return Fate::COMPLETED;
    }
    row.added = count;
    Open(at);
    return Fate::KEPT;
}
