// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The aggregators of a switch: their use, when a sum is complete, and what stays in them.
#pragma once

#include "base/events.h"
#include "base/schedule.h"
#include "network/fabric.h"
#include "network/packet.h"

#include <algorithm>
#include <cstdint>
#include <vector>

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
    Slots(const Arrays& arrays, const std::vector<uint32_t>& limits, uint32_t together);
    /// expected: the contributions to each row, in place of those that the arrays have.
    Slots(const Arrays& arrays, std::span<const uint16_t> expected,
          const std::vector<uint32_t>& limits, uint32_t together);

    /// Add to a row; `total` becomes the contributions in what leaves.
    Fate Add(uint32_t row, uint16_t count, uint16_t& total);

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
