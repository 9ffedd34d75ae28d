// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// A time-out that is put off again and again, mostly for nothing.
#ifndef SWITCHGNN_TIMER_H
#define SWITCHGNN_TIMER_H

#include "base/alarm.h"

#include <functional>
#include <utility>

/// Putting it off costs no event: it looks at the time when it rings.
class Timer : public Alarm
{
  public:
    using Call = std::function<void(Picoseconds now)>;

    explicit Timer(Call call)
        : call_(std::move(call))
    {
    }

    bool On() const
    {
        return on_;
    }

    /// Call at that time, and not at the one set before.
    void SetTo(Picoseconds at)
    {
        on_ = true;
        due_ = at;
        if (!ringing_ || at < rings_at_)
        {
            RingAt(at);
        }
    }

    void Stop()
    {
        on_ = false;
    }

  private:
    void RingAt(Picoseconds at)
    {
        ringing_ = true;
        rings_at_ = at;
        Set(at);
    }

    void Ring(Picoseconds now) override
    {
        if (!ringing_ || now != rings_at_)
        {
            return; // This ring was set before the time was brought forward.
        }
        ringing_ = false;
        if (!on_)
        {
            return;
        }
        if (now < due_)
        {
            RingAt(due_);
            return;
        }
        on_ = false;
        call_(now);
    }

    Call call_;
    bool on_ = false;
    Picoseconds due_ = 0;
    bool ringing_ = false;
    Picoseconds rings_at_ = 0;
};

#endif
