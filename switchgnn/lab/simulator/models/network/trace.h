// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Every arrival of a packet of the exchange, for tests: on request only.
#ifndef SWITCHGNN_TRACE_H
#define SWITCHGNN_TRACE_H

#include "network/packet.h"

#include <limits>
#include <vector>

struct Arrival
{
    Picoseconds at;
    /// Whether it arrives at the switch, or else at the worker.
    bool at_switch;
    /// The worker at the other end of the link, or at this one; from the number of workers on a
    /// link between switches, see leaf_spine.h.
    uint32_t worker;
    Packet packet;
};

class Trace
{
  public:
    /// workers: ports from this number on are between switches.
    explicit Trace(bool on, uint32_t workers = std::numeric_limits<uint32_t>::max())
        : on_(on),
          workers_(workers)
    {
    }

    void Take(Picoseconds at, bool at_switch, uint32_t worker, const Packet& packet)
    {
        if (on_ && static_cast<int>(packet.kind) < kExchangeKinds)
        {
            arrivals_.push_back({at, at_switch || worker >= workers_, worker, packet});
        }
    }

    const std::vector<Arrival>& Arrivals() const
    {
        return arrivals_;
    }

  private:
    bool on_;
    uint32_t workers_;
    std::vector<Arrival> arrivals_;
};

#endif
