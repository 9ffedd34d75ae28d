// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The network between the workers: one switch, or several and the links between them.
#pragma once

#include "network/link.h"

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

class Fabric {
  public:
    using Links = std::vector<ns3::Ptr<Link>>;

    /// ports: of all switches, to workers and to each other.
    explicit Fabric(size_t ports) : meter(ports) {}

    virtual ~Fabric() = default;
    /// The switch that a worker has its link to.
    virtual Receiver& EdgeOf(uint32_t worker) = 0;
    /// Attach the link down to a worker; in the order of workers.
    virtual void Attach(uint32_t worker, Link& down) = 0;
    virtual Tally Count() const = 0;

    /// Links from leaves to spines and back, leaf by leaf; none where there is one switch.
    const Links& Up() const { return up_; }
    const Links& Down() const { return down_; }
    /// What waits in the queues of all switches.
    QueueMeter meter;

  protected:
    Links up_;
    Links down_;
};
