// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "hosts/resender.h"

#include <bit>

Resender::Resender(const RoundTrip& round_trip, Ask ask)
    : round_trip_(round_trip),
      ask_(std::move(ask)),
      timer_(ns3::Create<Timer>([this](Picoseconds now) { Late(now); }))
{
}

void
Resender::Sent(uint32_t place, uint16_t length, Picoseconds now)
{
    open_[place] = {length, static_cast<uint8_t>((1U << length) - 1), now, 0};
    if (!timer_->On())
    {
        timer_->SetTo(now + round_trip_.BackedOff(0));
    }
}

Resender::Answer
Resender::Take(const Packet& ack)
{
    Answer answer;
    const auto found = open_.find(ack.group);
    if (found == open_.end())
    {
        return answer;
    }
    Run& run = found->second;
    run.attempts = 0;
    answer.confirmed = std::popcount(static_cast<uint8_t>(run.missing & ~ack.missing));
    run.missing &= ack.missing;
    // What was asked before says nothing about what was sent again since.
    for (uint16_t i = 0; i < run.length && ack.asked >= run.asked_at; ++i)
    {
        if (run.missing >> i & 1)
        {
            answer.lost.push_back(ack.group + 1 - run.length + i);
        }
    }
    if (run.missing == 0)
    {
        open_.erase(found);
    }
    if (open_.empty())
    {
        timer_->Stop();
    }
    return answer;
}

void
Resender::AskAbout(uint32_t place, Picoseconds now)
{
    Run& run = open_.at(place);
    run.asked_at = now;
    ask_(place, run.length, now);
}

void
Resender::Late(Picoseconds now)
{
    Picoseconds next = now + round_trip_.BackedOff(0);
    for (auto& [place, run] : open_)
    {
        if (now >= run.asked_at + round_trip_.BackedOff(run.attempts))
        {
            ++run.attempts;
            AskAbout(place, now);
        }
        next = std::min(next, run.asked_at + round_trip_.BackedOff(run.attempts));
    }
    timer_->SetTo(next);
}
