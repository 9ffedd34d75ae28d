// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The numbers of a simulation, as JSON.
#include "base/json.h"
#include "simulation.h"

#include <fstream>
#include <iomanip>
#include <string>

namespace
{
/// The most memory that this process held. getrusage would tell that of its parent, too.
uint64_t
PeakMemory()
{
    constexpr uint64_t kKilo = 1024;
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
    {
        uint64_t kilobytes;
        if (word == "VmHWM:" && status >> kilobytes)
        {
            return kKilo * kilobytes;
        }
    }
    return 0;
}
} // namespace

void
Simulation::Report(std::ostream& out) const
{
    uint64_t marked = 0;
    uint64_t lost = 0;
    for (const auto* links : {&down_, &fabric_->Up(), &fabric_->Down()})
    {
        for (const auto& link : *links)
        {
            marked += link->Marked();
            lost += link->Lost();
        }
    }
    uint64_t cuts = 0;
    uint64_t recalled = 0;
    const Tally tally = fabric_->Count();
    uint64_t sent_again = tally.sent_again;
    uint64_t repeated = 0;
    for (const auto& host : hosts_)
    {
        cuts += host->Cuts();
        recalled += host->Recalled();
        sent_again += host->SentAgain();
        repeated += host->Repeated();
    }
    out << std::setprecision(15);
    out << "{\"events\": " << events_ << ", \"wall_seconds\": " << seconds_
        << ", \"peak_memory_bytes\": " << PeakMemory()
        << ",\n \"max_queue_bytes\": " << options_.down.BytesIn(largest_queue_)
        << ", \"max_port_queue_bytes\": " << options_.down.BytesIn(largest_port_queue_)
        << ",\n \"marked\": " << marked << ", \"window_cuts\": " << cuts
        << ",\n \"lost\": " << lost << ", \"recalled\": " << recalled
        << ", \"sent_again\": " << sent_again << ", \"repeated\": " << repeated
        << ",\n \"barriers\": " << tally.barriers << ", \"sums\": " << tally.sums << ", \"overflowed\": " << tally.overflowed
        << ", \"passes\": " << tally.passes << ", \"contributions\": " << tally.contributions
        << ",\n \"loop_passes\": " << tally.loop_passes
        << ", \"max_loop_queue\": " << tally.max_loop_queue
        << ", \"max_slots\": " << tally.max_slots;
    ReportInside(out);
    ReportWorkers(out);
    ReportSeries(out);
    ReportTrace(out);
    if (background_)
    {
        out << ",\n \"background\": {";
        background_->Report(out, options_.trace);
        out << "}";
    }
    out << "}\n";
}

/// The links between switches, leaf by leaf.
void
Simulation::ReportInside(std::ostream& out) const
{
    const auto frames = [](const ns3::Ptr<Link>& link) { return link->Sent().frames; };
    const auto bytes = [](const ns3::Ptr<Link>& link) { return link->Sent().bytes; };
    List(out, "inside_frames_up", fabric_->Up(), frames);
    List(out, "inside_bytes_up", fabric_->Up(), bytes);
    List(out, "inside_frames_down", fabric_->Down(), frames);
    List(out, "inside_bytes_down", fabric_->Down(), bytes);
    List(out, "inside_sums_up", fabric_->Up(), [](const ns3::Ptr<Link>& link) {
        return link->Sent(Kind::SUM).frames;
    });
    List(out, "inside_features_up", fabric_->Up(), [](const ns3::Ptr<Link>& link) {
        return link->Sent(Kind::FEATURE).frames;
    });
}

void
Simulation::ReportWorkers(std::ostream& out) const
{
    using Links = ns3::Ptr<Link>;
    List(out, "finished", hosts_, [this](const auto& host) { return host->FinishedAt() - began_; });
    List(out, "frames_up", up_, [](const Links& link) { return link->Sent().frames; });
    List(out, "bytes_up", up_, [](const Links& link) { return link->Sent().bytes; });
    List(out, "frames_down", down_, [](const Links& link) { return link->Sent().frames; });
    List(out, "bytes_down", down_, [](const Links& link) { return link->Sent().bytes; });
    List(out, "features_up", up_, [](const Links& link) {
        return link->Sent(Kind::FEATURE).frames;
    });
    List(out, "features_down", down_, [](const Links& link) {
        return link->Sent(Kind::FEATURE).frames;
    });
    List(out, "feature_bytes_down", down_, [](const Links& link) {
        return link->Sent(Kind::FEATURE).bytes;
    });
    List(out, "sums_down", down_, [](const Links& link) { return link->Sent(Kind::SUM).frames; });
    List(out, "sum_bytes_down", down_, [](const Links& link) {
        return link->Sent(Kind::SUM).bytes;
    });
    List(out, "notices", up_, [](const Links& link) { return link->Sent(Kind::NOTICE).frames; });
}

void
Simulation::ReportSeries(std::ostream& out) const
{
    const auto& samples = series_->Samples();
    List(out, "series_at", samples, [this](const Sample& sample) { return sample.at - began_; });
    List(out, "series_queue_bytes", samples, [](const Sample& s) { return s.queue_bytes; });
    List(out, "series_slots", samples, [](const Sample& sample) { return sample.slots; });
    List(out, "series_sums", samples, [](const Sample& sample) { return sample.sums; });
    List(out, "series_overflowed", samples, [](const Sample& s) { return s.overflowed; });
}

void
Simulation::ReportTrace(std::ostream& out) const
{
    const auto& arrivals = trace_.Arrivals();
    List(out, "trace_at", arrivals, [this](const Arrival& arrival) { return arrival.at - began_; });
    List(out, "trace_at_switch", arrivals, [](const Arrival& a) { return a.at_switch ? 1 : 0; });
    List(out, "trace_worker", arrivals, [](const Arrival& arrival) { return arrival.worker; });
    List(out, "trace_kind", arrivals, [](const Arrival& arrival) {
        return static_cast<int>(arrival.packet.kind);
    });
    List(out, "trace_id", arrivals, [](const Arrival& arrival) { return arrival.packet.id; });
    List(out, "trace_count", arrivals, [](const Arrival& arrival) { return arrival.packet.count; });
}
