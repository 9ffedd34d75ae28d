// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "hosts/recaller.h"

#include <algorithm>

namespace
{
// As in host/innetwork/sums/receiver.py and host/round_trip.py.
constexpr int kAtOnce = 16;
constexpr Picoseconds kRecallShare = 4;
constexpr int kAttemptsWhenAnswered = 3;
// Time-outs without any sum; each is longer than the one before by a quarter of the block.
constexpr int kPatience = 64;
} // namespace

Recaller::Recaller(Expectant& expectant, const RoundTrip& round_trip)
    : expectant_(expectant),
      round_trip_(round_trip),
      timer_(ns3::Create<Timer>([this](Picoseconds now) { Late(now); }))
{
}

void
Recaller::Begin(Picoseconds now)
{
    Stop();
    marked_ = false;
    began_ = now;
}

void
Recaller::Wait(Picoseconds now)
{
    if (!waiting_)
    {
        waiting_ = true;
        attempts_ = in_vain_ = 0;
        quiet_since_ = now;
        timer_->SetTo(Due(now));
    }
}

void
Recaller::Heard(Picoseconds now)
{
    if (!waiting_)
    {
        return;
    }
    attempts_ = in_vain_ = 0;
    quiet_since_ = now;
    AskNext(now);
    timer_->SetTo(Due(now));
}

void
Recaller::NotYet(Picoseconds now)
{
    attempts_ = std::min(attempts_, kAttemptsWhenAnswered);
    AskNext(now);
}

void
Recaller::Stop()
{
    waiting_ = false;
    timer_->Stop();
    to_ask_.clear();
    asked_ = 0;
}

void
Recaller::Late(Picoseconds now)
{
    if (++in_vain_ > kPatience)
    {
        throw SimulationError("Nothing happens any more, but workers wait: the plan is wrong.");
    }
    ++attempts_;
    quiet_since_ = now;
    to_ask_ = expectant_.MissingRows();
    asked_ = 0;
    for (int i = 0; i < kAtOnce; ++i)
    {
        AskNext(now);
    }
    timer_->SetTo(Due(now));
}

void
Recaller::AskNext(Picoseconds now)
{
    while (asked_ < to_ask_.size() && !expectant_.Misses(to_ask_[asked_]))
    {
        ++asked_;
    }
    if (asked_ < to_ask_.size())
    {
        expectant_.Recall(to_ask_[asked_++], now);
    }
}

/// How slow the others are shows in the time that has passed.
Picoseconds
Recaller::Due(Picoseconds now) const
{
    const Picoseconds share = (now - began_) / kRecallShare;
    return quiet_since_ + std::max(share, round_trip_.BackedOff(attempts_, !marked_));
}
