// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Packets that leave the loop at a time to come, in the order of those times.
#ifndef SWITCHGNN_OUTLET_H
#define SWITCHGNN_OUTLET_H

#include "base/alarm.h"
#include "base/ring_buffer.h"
#include "network/packet.h"

#include <functional>

class Outlet : public Alarm
{
  public:
    using Send = std::function<void(const Packet& packet, uint32_t worker, Picoseconds now)>;

    explicit Outlet(Send send)
        : send_(std::move(send))
    {
    }

    void Add(const Packet& packet, uint32_t worker, Picoseconds at)
    {
        waiting_.Push({packet, worker, at});
        if (!Pending())
        {
            Set(at);
        }
    }

  private:
    struct Leaving
    {
        Packet packet;
        uint32_t worker;
        Picoseconds at;
    };

    void Ring(Picoseconds now) override
    {
        while (!waiting_.Empty() && waiting_.Front().at <= now)
        {
            const Leaving leaving = waiting_.Pop();
            send_(leaving.packet, leaving.worker, now);
        }
        if (!waiting_.Empty())
        {
            Set(waiting_.Front().at);
        }
    }

    Send send_;
    RingBuffer<Leaving> waiting_;
};

#endif
