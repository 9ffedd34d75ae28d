// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// An event of ns-3 that is used again and again: no allocation for each time it happens.
#ifndef SWITCHGNN_ALARM_H
#define SWITCHGNN_ALARM_H

#include "base/units.h"

#include "ns3/event-impl.h"
#include "ns3/nstime.h"
#include "ns3/simulator.h"

class Alarm : public ns3::EventImpl
{
  public:
    /// Whether it has been set since it rang last.
    bool Pending() const
    {
        return pending_;
    }

    /// Ring at a time that is not past. What was set before rings as well.
    void Set(Picoseconds at)
    {
        pending_ = true;
        const ns3::Time wait = ns3::TimeStep(at) - ns3::Simulator::Now();
        // The simulator gives up the reference that it is given here.
        ns3::Simulator::Schedule(wait, ns3::Ptr<ns3::EventImpl>(this));
    }

  protected:
    virtual void Ring(Picoseconds now) = 0;

  private:
    void Notify() override
    {
        pending_ = false;
        Ring(ns3::Simulator::Now().GetTimeStep());
    }

    bool pending_ = false;
};

#endif
