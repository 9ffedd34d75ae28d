// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// What all hosts have in common: a link to the switch, a window, an end.
#ifndef SWITCHGNN_HOST_H
#define SWITCHGNN_HOST_H

#include "base/alarm.h"
#include "hosts/congestion.h"
#include "network/link.h"

class Host : public Receiver
{
  public:
    Host(uint32_t worker, const PaceOptions& pace);

    /// Attach the link to the switch.
    void Attach(Link& up)
    {
        up_ = &up;
    }

    virtual void Start(Picoseconds now) = 0;

    bool Finished() const
    {
        return finished_;
    }

    Picoseconds FinishedAt() const
    {
        return finished_at_;
    }

    const Congestion& Control() const
    {
        return congestion_;
    }

    /// Questions about what did not come.
    virtual uint64_t Recalled() const
    {
        return 0;
    }

    /// Data packets that this host sent again.
    virtual uint64_t SentAgain() const
    {
        return 0;
    }

    /// Data packets that came, and had come before.
    virtual uint64_t Repeated() const
    {
        return 0;
    }

  protected:
    /// Send the next data packet.
    virtual void SendNext(Picoseconds now) = 0;
    /// Data packets that are left and need not wait for acknowledgements of others.
    virtual uint64_t Sendable() const = 0;
    virtual uint64_t InFlight() const = 0;

    /// Send what window and rate allow, now and whenever the rate allows more.
    void SendSome(Picoseconds now);
    void Finish(Picoseconds now);

    uint32_t worker_;
    PaceOptions pace_;
    Congestion congestion_;
    Link* up_ = nullptr;

  private:
    class Pacer : public Alarm
    {
      public:
        explicit Pacer(Host& host)
            : host_(host)
        {
        }

      private:
        void Ring(Picoseconds now) override
        {
            host_.Paced(now);
        }

        Host& host_;
    };

    void PaceFrom(Picoseconds now);
    void Paced(Picoseconds now);

    ns3::Ptr<Pacer> pacer_;
    bool paced_ = false;
    Picoseconds paced_until_ = 0;
    bool finished_ = false;
    Picoseconds finished_at_ = 0;
};

#endif
