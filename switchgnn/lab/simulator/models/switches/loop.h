// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Recirculation: a port with a rate, that serves one packet after another.
#ifndef SWITCHGNN_LOOP_H
#define SWITCHGNN_LOOP_H

#include "base/alarm.h"
#include "base/ring_buffer.h"
#include "base/schedule.h"
#include "network/packet.h"

#include <algorithm>
#include <functional>
#include <utility>

/// A packet between two passes.
struct Circling
{
    Packet packet;
    /// What is left to contribute.
    Schedule::Contributions left;
    /// Only the acknowledgement is left, which had to wait for a sum to leave.
    bool through = false;
};

/// A packet that comes round makes all passes that it still needs in a row, one per service time.
/// So there is one event for a packet that waits, not one per pass.
class Loop : public Alarm
{
  public:
    /// Makes a pass, and tells whether another one is needed.
    using MakePass = std::function<bool(Circling& circling, Picoseconds at)>;

    /// service: time of one pass; 0 when the rate is not limited.
    Loop(MakePass make_pass, Picoseconds service)
        : make_pass_(std::move(make_pass)),
          service_(service)
    {
    }

    void Add(const Circling& circling, Picoseconds now)
    {
        if (waiting_.Empty() && free_at_ <= now)
        {
            Serve(circling, now);
            return;
        }
        waiting_.Push(circling);
        longest_ = std::max<uint64_t>(longest_, waiting_.Size());
        if (!Pending())
        {
            Set(free_at_);
        }
    }

    uint64_t Passes() const
    {
        return passes_;
    }

    /// The most packets that waited at once.
    uint64_t Longest() const
    {
        return longest_;
    }

  private:
    void Ring(Picoseconds now) override
    {
        Serve(waiting_.Pop(), now);
        if (!waiting_.Empty())
        {
            Set(free_at_);
        }
    }

    void Serve(Circling circling, Picoseconds now)
    {
        bool more = true;
        Picoseconds at = now;
        while (more)
        {
            at += service_;
            ++passes_;
            more = make_pass_(circling, at);
        }
        free_at_ = at;
    }

    MakePass make_pass_;
    Picoseconds service_;
    Picoseconds free_at_ = 0;
    RingBuffer<Circling> waiting_;
    uint64_t passes_ = 0;
    uint64_t longest_ = 0;
};

#endif
