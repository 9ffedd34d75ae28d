// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Workers around a fabric: one switch, or leaves and spines.
#pragma once

#include "background/background.h"
#include "base/series.h"
#include "hosts/mixed_host.h"
#include "network/fabric.h"
#include "options.h"

#include <memory>
#include <optional>
#include <ostream>

class Simulation {
  public:
    explicit Simulation(const Options& options);

    /// Exchange once, and stop when all are through.
    void Run();

    /// Write the measurements as one JSON object.
    void Report(std::ostream& out) const;

  private:
    void AddFabric();
    void AddHosts();
    void AddSchedule();
    std::unique_ptr<Worker> MakeWorker(uint32_t worker) const;
    std::unique_ptr<Peer> MakePeer(uint32_t worker);
    void AddBackground();
    void Connect();
    /// Begin the exchange.
    void Open(Picoseconds now);
    /// End the exchange: record the maxima of its queues.
    void Close();
    Sample Look(Picoseconds now);
    bool Over() const;
    void ReportInside(std::ostream& out) const;
    void ReportWorkers(std::ostream& out) const;
    void ReportSeries(std::ostream& out) const;
    void ReportTrace(std::ostream& out) const;

    Options options_;
    Arrays arrays_;
    Trace trace_;
    std::unique_ptr<Schedule> schedule_;
    std::unique_ptr<Fabric> fabric_;
    std::optional<Arrived> arrived_;
    std::vector<std::unique_ptr<Participant>> hosts_;
    std::vector<ns3::Ptr<Link>> up_;
    std::vector<ns3::Ptr<Link>> down_;
    ns3::Ptr<Series> series_;
    ns3::Ptr<Background> background_;
    ns3::Ptr<Timer> opening_;
    // When the exchange began.
    Picoseconds began_ = 0;
    Picoseconds largest_queue_ = 0;
    Picoseconds largest_port_queue_ = 0;
    uint64_t events_ = 0;
    double seconds_ = 0;
};
