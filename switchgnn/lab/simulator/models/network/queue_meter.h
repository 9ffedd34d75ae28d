// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// How much waits in all queues of the switch together, at any time and at most.
#ifndef SWITCHGNN_QUEUE_METER_H
#define SWITCHGNN_QUEUE_METER_H

#include "base/units.h"

#include <functional>
#include <queue>
#include <utility>
#include <vector>

/// A queue is as long as the time until its link is free. The sum over all busy links is kept;
/// links that have become idle are found in a heap, so nothing happens when a frame has left.
class QueueMeter
{
  public:
    explicit QueueMeter(size_t ports)
        : free_(ports, 0)
    {
    }

    /// A port's link is busy until `free` from now on.
    void Busy(size_t port, Picoseconds free, Picoseconds now)
    {
        Retire(now);
        if (free_[port] <= now)
        {
            ++busy_;
            sum_ += free;
            idle_.push({free, port});
        }
        else
        {
            sum_ += free - free_[port];
        }
        free_[port] = free;
        largest_ = std::max(largest_, sum_ - busy_ * now);
        largest_port_ = std::max(largest_port_, free - now);
    }

    /// Time that all queues together take to send, if one after another.
    Picoseconds Total(Picoseconds now)
    {
        Retire(now);
        return sum_ - busy_ * now;
    }

    /// Begin to look for the largest anew.
    void Forget()
    {
        largest_ = 0;
        largest_port_ = 0;
    }

    Picoseconds Largest() const
    {
        return largest_;
    }

    Picoseconds LargestPort() const
    {
        return largest_port_;
    }

  private:
    using Idle = std::pair<Picoseconds, size_t>;

    void Retire(Picoseconds now)
    {
        while (!idle_.empty() && idle_.top().first <= now)
        {
            const size_t port = idle_.top().second;
            idle_.pop();
            if (free_[port] > now)
            {
                idle_.push({free_[port], port});
            }
            else
            {
                --busy_;
                sum_ -= free_[port];
            }
        }
    }

    std::vector<Picoseconds> free_;
    std::priority_queue<Idle, std::vector<Idle>, std::greater<>> idle_;
    Picoseconds sum_ = 0;
    int64_t busy_ = 0;
    Picoseconds largest_ = 0;
    Picoseconds largest_port_ = 0;
};

#endif
