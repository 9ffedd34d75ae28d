// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Asks for sums that do not come. host/innetwork/sums/receiver.py first asks for one; here sixteen are
// asked for from the start, as at the speed of hardware that is the time of a few packets. Nothing
// is lost inside the switch here, so a sum comes sooner or later, and nothing is fetched.
#ifndef SWITCHGNN_RECALLER_H
#define SWITCHGNN_RECALLER_H

#include "base/timer.h"
#include "hosts/round_trip.h"

#include <vector>

/// What a recaller is told of the sums of its worker.
class Expectant
{
  public:
    virtual ~Expectant() = default;
    /// The rows of this block that have not come.
    virtual std::vector<uint32_t> MissingRows() const = 0;
    virtual bool Misses(uint32_t row) const = 0;
    virtual void Recall(uint32_t row, Picoseconds now) = 0;
};

/// When nothing has come for a while, sixteen are asked for; then each answer lets another one go
/// of those that were missing by then, as they may be thousands.
class Recaller
{
  public:
    Recaller(Expectant& expectant, const RoundTrip& round_trip);

    /// A fragment of a block begins.
    void Begin(Picoseconds now);
    /// The worker's own features are through, and sums are missing.
    void Wait(Picoseconds now);
    /// A packet came marked: the queue was long, so what does not come is lost there rather than
    /// late, and the shortest time-out, which is for hosts that are slow, does not hold.
    void Marked()
    {
        marked_ = true;
    }

    /// A sum came.
    void Heard(Picoseconds now);
    /// The switch says that a sum is not complete.
    void NotYet(Picoseconds now);
    /// All are here.
    void Stop();

  private:
    void Late(Picoseconds now);
    void AskNext(Picoseconds now);
    Picoseconds Due(Picoseconds now) const;

    Expectant& expectant_;
    const RoundTrip& round_trip_;
    ns3::Ptr<Timer> timer_;
    Picoseconds began_ = 0;
    Picoseconds quiet_since_ = 0;
    bool waiting_ = false;
    bool marked_ = false;
    int attempts_ = 0;
    int in_vain_ = 0;
    std::vector<uint32_t> to_ask_;
    size_t asked_ = 0;
};

#endif
