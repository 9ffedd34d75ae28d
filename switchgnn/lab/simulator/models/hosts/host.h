// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// What all hosts have in common: a link to the switch, an end, and mostly a window.
#ifndef SWITCHGNN_HOST_H
#define SWITCHGNN_HOST_H

#include "base/alarm.h"
#include "hosts/congestion.h"
#include "network/link.h"

/// The end of a link that takes part in the exchange.
class Participant : public Receiver
{
  public:
    /// Attach the link to the switch.
    virtual void Attach(Link& up) = 0;
    virtual void Start(Picoseconds now) = 0;
    virtual bool Finished() const = 0;
    virtual Picoseconds FinishedAt() const = 0;
    /// How often windows were narrowed.
    virtual uint64_t Cuts() const = 0;

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
};

/// A participant with one window.
class Host : public Participant
{
  public:
    Host(uint32_t worker, const PaceOptions& pace);

    void Attach(Link& up) override
    {
        up_ = &up;
    }

    bool Finished() const override
    {
        return finished_;
    }

    Picoseconds FinishedAt() const override
    {
        return finished_at_;
    }

    uint64_t Cuts() const override
    {
        return congestion_.Cuts();
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
