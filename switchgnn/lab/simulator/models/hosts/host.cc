// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "hosts/host.h"

#include <algorithm>

Host::Host(uint32_t worker, const PaceOptions& pace)
    : worker_(worker),
      pace_(pace),
      congestion_(pace),
      pacer_(ns3::Create<Pacer>(*this))
{
}

void
Host::SendSome(Picoseconds now)
{
    while (const uint64_t left = Sendable())
    {
        const uint32_t allowed = congestion_.Allowance(InFlight(), now);
        const auto count = static_cast<uint32_t>(std::min<uint64_t>(left, allowed));
        for (uint32_t i = 0; i < count; ++i)
        {
            SendNext(now);
        }
        congestion_.Sent(count);
        if (count == 0)
        {
            PaceFrom(now);
            return;
        }
    }
}

/// A rate that has grown since brings the next packet forward.
void
Host::PaceFrom(Picoseconds now)
{
    const Picoseconds at = now + congestion_.Wait(InFlight());
    if (at > now && (!paced_ || at < paced_until_))
    {
        paced_ = true;
        paced_until_ = at;
        pacer_->Set(at);
    }
}

/// What was brought forward rings a second time, for nothing.
void
Host::Paced(Picoseconds now)
{
    if (paced_ && now == paced_until_)
    {
        paced_ = false;
        SendSome(now);
    }
}

void
Host::Finish(Picoseconds now)
{
    finished_ = true;
    finished_at_ = now;
}
