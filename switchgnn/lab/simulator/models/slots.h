// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The aggregators of a switch: their use, when a sum is complete, and what stays in them.
#pragma once

#include "events.h"
#include "link.h"
#include "schedule.h"

#include <algorithm>
#include <cstdint>
#include <vector>

/// What the switches have done so far.
struct Tally {
    /// Sums that left for a worker.
    uint64_t sums = 0;
    /// Contributions that found no slot on all their way.
    uint64_t overflowed = 0;
    /// Sums that a worker recalled.
    uint64_t sent_again = 0;
    /// Of each switch that has workers.
    uint64_t barriers = 0;
    uint64_t passes = 0;
    uint64_t contributions = 0;
    uint64_t loop_passes = 0;
    /// The most that waited at one switch.
    uint64_t max_loop_queue = 0;
    /// Slots that hold an unfinished sum, and the most there have been; of several switches those
    /// of the one that has most.
    uint64_t slots = 0;
    uint64_t max_slots = 0;
};

enum class Fate {
    KEPT,
    COMPLETED,
    OVERFLOWED,
};

/// A row is a destination in a block. With a plan each has a slot of its own; with the strawman
/// they compete for those of their pool, first come, first served.
class Slots {
  public:
    /// limits: the slots of each pool; empty with a plan.
    /// together: rows that share a slot, the fragments of a destination.
    Slots(const Arrays& arrays, const std::vector<uint32_t>& limits, uint32_t together)
        : Slots(arrays, arrays.Get<uint16_t>("row_expected"), limits, together) {}

    /// expected: the contributions to each row, in place of those that the arrays have.
    Slots(const Arrays& arrays, std::span<const uint16_t> expected,
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

    /// Add to a row; `total` becomes the contributions in what leaves.
    Fate Add(uint32_t row, uint16_t count, uint16_t& total) {
        return free_.empty() ? AddPlanned(row, count, total) : AddPooled(row, count, total);
    }

    uint32_t WorkerOf(uint32_t row) const { return rows_[row].worker; }
    /// Slots that hold an unfinished sum.
    uint64_t InUse() const { return in_use_; }
    uint64_t MostInUse() const { return most_in_use_; }

  private:
    struct Row {
        uint16_t expected;
        uint16_t seen;
        uint16_t added;
        uint8_t worker;
        uint8_t pool;
    };

    /// A sum begins: the slot is taken with the first one in it.
    void Open(uint32_t row) {
        if (open_[row / together_]++ != 0) {
            return;
        }
        ++in_use_;
        most_in_use_ = std::max(most_in_use_, in_use_);
        if (!free_.empty()) {
            --free_[rows_[row].pool];
        }
    }

    /// A sum is complete: the slot is free after the last one in it.
    void Close(uint32_t row) {
        if (--open_[row / together_] != 0) {
            return;
        }
        --in_use_;
        if (!free_.empty()) {
            ++free_[rows_[row].pool];
        }
    }

    Fate AddPlanned(uint32_t at, uint16_t count, uint16_t& total) {
        Row& row = rows_[at];
        if (row.added == 0) {
            Open(at);
        }
        row.added += count;
        if (row.added < row.expected) {
            return Fate::KEPT;
        }
        if (row.added > row.expected) {
            throw SimulationError(
                "A slot got more contributions than it expects: the plan is wrong.");
        }
        total = row.added;
        row.added = 0;
        Close(at);
        return Fate::COMPLETED;
    }

    /// As p4src/strawman/banks.p4.
    Fate AddPooled(uint32_t at, uint16_t count, uint16_t& total) {
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

    uint32_t together_;
    std::vector<Row> rows_;
    // Unfinished sums in each slot.
    std::vector<uint8_t> open_;
    std::vector<uint32_t> free_;
    uint64_t in_use_ = 0;
    uint64_t most_in_use_ = 0;
};

/// The sums that are still in their slots, for workers that recall them. A slot keeps its sum until
/// the next block, or fragment, overwrites it.
class LeftSums {
  public:
    struct Left {
        /// Contributions in the sum; 0: it has not left.
        uint16_t count = 0;
        /// Of its frame.
        uint16_t bytes = 0;
    };

    /// Note that a sum has left.
    void Note(uint32_t row, Left left) {
        if (row >= left_.size()) {
            left_.resize(std::max<size_t>(row + 1, 2 * left_.size()));
        }
        left_[row] = left;
    }

    Left Of(uint32_t row) const { return row < left_.size() ? left_[row] : Left{}; }
    void Clear() { std::fill(left_.begin(), left_.end(), Left{}); }

  private:
    std::vector<Left> left_;
};

/// Adds packets to the slots of one switch, and counts.
class Adder {
  public:
    explicit Adder(Slots& slots) : slots_(slots) {}

    /// Add a packet to a row. Return whether something leaves, and set `leaving` to it: the packet
    /// becomes the sum, as in p4src/rewrite.p4, and so keeps its mark.
    bool Add(uint32_t row, const Packet& packet, Packet& leaving) {
        ++tally.contributions;
        uint16_t total;
        const Fate fate = slots_.Add(row, packet.count, total);
        if (fate == Fate::KEPT) {
            return false;
        }
        const Kind kind = fate == Fate::COMPLETED ? Kind::SUM : packet.kind;
        tally.overflowed += fate == Fate::OVERFLOWED;
        tally.sums += kind == Kind::SUM;
        leaving = {.kind = kind, .ecn = packet.ecn, .count = total, .id = row};
        leaving.bytes = packet.bytes;
        return true;
    }

    /// The worker that holds the destination of a row.
    uint32_t WorkerOf(uint32_t row) const { return slots_.WorkerOf(row); }

    /// Refuse to go on to the next block while a sum of this one is incomplete.
    void CheckComplete() const {
        if (slots_.InUse() != 0) {
            throw SimulationError("All workers are done with a block, but sums are incomplete.");
        }
    }

    Tally Count() const {
        Tally counted = tally;
        counted.slots = slots_.InUse();
        counted.max_slots = slots_.MostInUse();
        return counted;
    }

    Tally tally;

  private:
    Slots& slots_;
};
