// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Adds what packets carry to the slots of one switch, and counts what it does.
#ifndef SWITCHGNN_ADDER_H
#define SWITCHGNN_ADDER_H

#include "network/fabric.h"
#include "network/packet.h"
#include "switches/slots.h"

class Adder
{
  public:
    explicit Adder(Slots& slots)
        : slots_(slots)
    {
    }

    /// Add what a packet carries to a row. Tell whether something leaves, and set `leaving` to it:
    /// the packet becomes the sum, as in p4src/departure.p4, and so keeps its mark.
    bool Add(uint32_t row, const Packet& packet, Packet& leaving)
    {
        ++tally.contributions;
        uint16_t total;
        const Fate fate = slots_.Add(row, packet.count, total);
        if (fate == Fate::KEPT)
        {
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
    uint32_t WorkerOf(uint32_t row) const
    {
        return slots_.WorkerOf(row);
    }

    /// Refuse to go on to the next block while a sum of this one is incomplete.
    void CheckComplete() const
    {
        if (slots_.InUse() != 0)
        {
            throw SimulationError("All workers are done with a block, but sums are incomplete.");
        }
    }

    /// What has been counted, and how many slots are and were in use.
    Tally Count() const
    {
        Tally counted = tally;
        counted.slots = slots_.InUse();
        counted.max_slots = slots_.MostInUse();
        return counted;
    }

    Tally tally;

  private:
    Slots& slots_;
};

#endif
