// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Flows between the same hosts, over the same links and queues as the exchange's packets.
#ifndef SWITCHGNN_BACKGROUND_H
#define SWITCHGNN_BACKGROUND_H

#include "background/flow.h"
#include "background/flow_sizes.h"
#include "background/options.h"

#include <memory>
#include <ostream>
#include <random>
#include <vector>

/// Flows begin as a Poisson process, from and to hosts that are drawn. They begin until the
/// exchange is over; then those that run are simulated to their end.
class Background : public Alarm
{
  public:
    /// Whether the exchange is over; asked when a flow begins.
    using Over = std::function<bool()>;

    Background(const BackgroundOptions& options,
               const FlowSizes& sizes,
               const LinkOptions& link,
               const PaceOptions& workers_pace,
               Over over);

    /// Links of the next host, whose ends are what BeforeSwitch and BeforeHost returned.
    void Attach(Link& up, Link& down);
    /// What takes the background's packets out of those to the switch, or to a host.
    Receiver& BeforeSwitch(Receiver& inner);
    Receiver& BeforeHost(Receiver& inner);

    void Start(Picoseconds now);

    /// How long it runs before the exchange begins: long enough for its largest flows.
    Picoseconds WarmUp() const;

    /// Write what became of it as members of an object of JSON.
    void Report(std::ostream& out, bool trace) const;

  private:
    /// A part of a host or of the switch: what it does not know it hands on.
    template <void (Background::*Take)(const Packet&, uint32_t, Picoseconds)>
    class Gate : public Receiver
    {
      public:
        Gate(Background& background, Receiver& inner)
            : background_(background),
              inner_(inner)
        {
        }

        void Receive(const Packet& packet, uint32_t port, Picoseconds now) override
        {
            if (packet.kind == Kind::BACKGROUND || packet.kind == Kind::BACKGROUND_ACK)
            {
                (background_.*Take)(packet, port, now);
            }
            else
            {
                inner_.Receive(packet, port, now);
            }
        }

      private:
        Background& background_;
        Receiver& inner_;
    };

    void Ring(Picoseconds now) override;
    void Begin(Picoseconds now);
    bool Stuck();
    void Forward(const Packet& packet, uint32_t port, Picoseconds now);
    void Arrive(const Packet& packet, uint32_t port, Picoseconds now);
    /// In [0, 1); the same everywhere, which is not said of the library's distributions.
    double Draw();
    Picoseconds Gap();
    std::vector<double> Slowdowns() const;
    void ReportFlows(std::ostream& out) const;

    BackgroundOptions options_;
    FlowSizes sizes_;
    LinkOptions link_;
    PaceOptions pace_;
    Over over_;
    std::mt19937_64 draw_;
    std::vector<std::unique_ptr<Receiver>> gates_;
    std::vector<Link*> up_;
    std::vector<Link*> down_;
    // They live to the end: events may refer to them.
    std::vector<std::unique_ptr<Flow>> flows_;
    Picoseconds ended_ = 0;
    uint64_t frames_before_ = 0;
};

#endif
