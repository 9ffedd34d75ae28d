// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Copies between hosts that may be lost: host/direct/outbox.py and host/direct/arrivals.py.
#ifndef SWITCHGNN_RESENDER_H
#define SWITCHGNN_RESENDER_H

#include "base/timer.h"
#include "hosts/round_trip.h"
#include "network/packet.h"

#include <map>
#include <span>
#include <vector>

/// Which frames of all senders have arrived; each has one receiver, so all of them can share it.
class Arrived
{
  public:
    /// indptr: where the frames of each sender begin.
    explicit Arrived(std::span<const uint64_t> indptr)
        : indptr_(indptr),
          arrived_(indptr.back())
    {
    }

    /// Note that a frame has arrived. Tell whether it is the first time.
    bool Take(uint32_t sender, uint32_t place)
    {
        const uint64_t at = indptr_[sender] + place;
        const bool news = !arrived_[at];
        arrived_[at] = true;
        return news;
    }

    /// A bit for each frame of the run of that length up to the place that has not come.
    uint8_t Missing(uint32_t sender, uint32_t place, uint16_t length) const
    {
        uint8_t missing = 0;
        const uint64_t first = indptr_[sender] + place + 1 - length;
        for (uint16_t i = 0; i < length; ++i)
        {
            missing |= static_cast<uint8_t>(!arrived_[first + i] << i);
        }
        return missing;
    }

  private:
    std::span<const uint64_t> indptr_;
    std::vector<bool> arrived_;
};

/// The runs of frames of one sender that have not been acknowledged whole. A run ends with the
/// frame that asks; its place names the run.
class Resender
{
  public:
    /// Sends a question about a run of frames of that length.
    using Ask = std::function<void(uint32_t place, uint16_t length, Picoseconds now)>;

    /// What an acknowledgement says.
    struct Answer
    {
        uint32_t confirmed = 0;
        /// The places of frames that are lost.
        std::vector<uint32_t> lost;
    };

    Resender(const RoundTrip& round_trip, Ask ask);

    /// A frame that asks has been sent.
    void Sent(uint32_t place, uint16_t length, Picoseconds now);
    Answer Take(const Packet& ack);
    /// Lost frames have been sent again: ask whether they come.
    void AskAbout(uint32_t place, Picoseconds now);

  private:
    struct Run
    {
        uint16_t length;
        uint8_t missing;
        Picoseconds asked_at;
        int attempts;
    };

    void Late(Picoseconds now);

    const RoundTrip& round_trip_;
    Ask ask_;
    ns3::Ptr<Timer> timer_;
    std::map<uint32_t, Run> open_;
};

#endif
