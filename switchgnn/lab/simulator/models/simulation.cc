// Workers around a fabric: one switch, or leaves and spines.

#include "background.h"
#include "events.h"
#include "fabrics.h"
#include "host.h"
#include "options.h"
#include "worker.h"

#include <sys/prctl.h>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>
#include <ostream>
#include <string>

constexpr int kRefused = 2;

/// The peak memory of this process; getrusage would include its parent's.
uint64_t PeakMemory() {
    constexpr uint64_t kKilo = 1024;
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
        uint64_t kilobytes;
        if (word == "VmHWM:" && status >> kilobytes) return kKilo * kilobytes;
    }
    return 0;
}

using Count = Link::Count;

/// A number of what a link has sent: of one kind, or of the whole exchange.
auto OnLink(uint64_t Count::*number) {
    return [number](const auto& link) { return link->Sent().*number; };
}

auto OnLink(uint64_t Count::*number, Kind kind) {
    return [number, kind](const auto& link) { return link->Sent(kind).*number; };
}

class Simulation {
  public:
    explicit Simulation(const Options& options)
        : options_(options), arrays_(options.arrays), trace_(options.trace, options.workers) {
        if (!options.host_based) {
            schedule_ = std::make_unique<Schedule>(arrays_, options.blocks, options.fragments,
                                                   options.together, options.pools,
                                                   options.rows, options.fragment_bytes);
        }
        AddHosts();
        if (options.leaves == 0) {
            fabric_ = std::make_unique<Star>(options, arrays_, schedule_.get());
        } else {
            fabric_ = std::make_unique<LeafSpine>(options, arrays_, schedule_.get(), trace_);
        }
        AddBackground();
        Connect();
        series_ = ns3::Create<Series>([this](Picoseconds now) { return Look(now); },
                                      [this] { return Over(); });
    }

    /// Exchange once, and stop when all are through.
    void Run() {
        const auto started = std::chrono::steady_clock::now();
        if (background_) {
            background_->Start(0);
            opening_ = ns3::Create<Timer>([this](Picoseconds now) { Open(now); });
            opening_->SetTo(background_->WarmUp());
        } else {
            Open(0);
        }
        ns3::Simulator::Run();
        events_ = ns3::Simulator::GetEventCount();
        seconds_ =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
        if (!Over()) {
            throw SimulationError("Nothing happens any more, but workers wait: the plan is wrong.");
        }
        if (!background_) Close();
    }

    /// Write the measurements as one JSON object.
    void Report(std::ostream& out) const {
        uint64_t marked = 0;
        uint64_t lost = 0;
        for (const auto* links : {&down_, &fabric_->Up(), &fabric_->Down()}) {
            for (const auto& link : *links) {
                marked += link->Marked();
                lost += link->Lost();
            }
        }
        const Tally tally = fabric_->Count();
        HostTally hosts;
        for (const auto& host : hosts_) host->CountInto(hosts);
        out << std::setprecision(15);
        out << "{\"events\": " << events_ << ", \"wall_seconds\": " << seconds_
            << ", \"peak_memory_bytes\": " << PeakMemory()
            << ",\n \"max_queue_bytes\": " << options_.down.BytesIn(largest_queue_)
            << ", \"max_port_queue_bytes\": " << options_.down.BytesIn(largest_port_queue_)
            << ",\n \"marked\": " << marked << ", \"window_cuts\": " << hosts.cuts
            << ",\n \"lost\": " << lost << ", \"recalled\": " << hosts.recalled
            << ", \"sent_again\": " << tally.sent_again + hosts.sent_again
            << ", \"repeated\": " << hosts.repeated << ",\n \"barriers\": " << tally.barriers
            << ", \"sums\": " << tally.sums << ", \"overflowed\": " << tally.overflowed
            << ", \"passes\": " << tally.passes << ", \"contributions\": " << tally.contributions
            << ",\n \"loop_passes\": " << tally.loop_passes
            << ", \"max_loop_queue\": " << tally.max_loop_queue
            << ", \"max_slots\": " << tally.max_slots;
        ReportInside(out);
        ReportWorkers(out);
        ReportSeries(out);
        ReportTrace(out);
        if (background_) {
            out << ",\n \"background\": {";
            background_->Report(out, options_.trace);
            out << "}";
        }
        out << "}\n";
    }

  private:
    void AddHosts() {
        const bool between_hosts = options_.packed_frame_bytes != 0;
        if (between_hosts) arrived_.emplace(arrays_.Get<uint64_t>("frame_indptr"));
        for (uint32_t worker = 0; worker < options_.workers; ++worker) {
            if (!schedule_) {
                hosts_.push_back(MakePeer(worker));
            } else if (between_hosts) {
                hosts_.push_back(std::make_unique<MixedHost>(MakeWorker(worker), MakePeer(worker)));
            } else {
                hosts_.push_back(MakeWorker(worker));
            }
        }
    }

    std::unique_ptr<Worker> MakeWorker(uint32_t worker) const {
        return std::make_unique<Worker>(*schedule_, worker, options_.pace, options_.opening);
    }

    std::unique_ptr<Peer> MakePeer(uint32_t worker) {
        const auto indptr = arrays_.Get<uint64_t>("frame_indptr");
        const uint64_t first = indptr[worker];
        const uint64_t count = indptr[worker + 1] - first;
        const bool longer = options_.packed_frame_bytes != FrameBytes(Kind::FEATURE);
        const PaceOptions pace =
            longer ? PaceInFrames(options_.pace, options_.packed_frame_bytes) : options_.pace;
        return std::make_unique<Peer>(
            worker, pace, arrays_.Get<uint8_t>("frame_to").subspan(first, count),
            arrays_.Get<uint8_t>("frame_confirms").subspan(first, count),
            arrays_.Get<uint16_t>("frame_bytes").subspan(first, count),
            arrays_.Get<uint64_t>("awaited")[worker], *arrived_);
    }

    void AddBackground() {
        if (options_.background.load == 0) return;
        const auto over = [this] {
            if (!Over()) return false;
            Close();
            return true;
        };
        background_ = ns3::Create<Background>(options_.background, FlowSizes(arrays_), options_.up,
                                              options_.pace, over);
    }

    void Connect() {
        for (uint32_t worker = 0; worker < options_.workers; ++worker) {
            Receiver& host = *hosts_[worker];
            Receiver& edge = fabric_->EdgeOf(worker);
            Receiver& top = background_ ? background_->BeforeSwitch(edge) : edge;
            Receiver& bottom = background_ ? background_->BeforeHost(host) : host;
            up_.push_back(ns3::Create<Link>(options_.up, top, worker, nullptr, trace_));
            down_.push_back(
                ns3::Create<Link>(options_.down, bottom, worker, &fabric_->meter, trace_));
            hosts_[worker]->Attach(*up_.back());
            fabric_->Attach(worker, *down_.back());
            if (background_) background_->Attach(*up_.back(), *down_.back());
        }
    }

    /// Begin the exchange.
    void Open(Picoseconds now) {
        began_ = now;
        fabric_->meter.Forget();
        for (const auto& host : hosts_) host->Start(now);
        series_->Start(now);
    }

    /// End the exchange: record the maxima of its queues.
    void Close() {
        largest_queue_ = fabric_->meter.Largest();
        largest_port_queue_ = fabric_->meter.LargestPort();
    }

    Sample Look(Picoseconds now) {
        const Tally tally = fabric_->Count();
        return {now, options_.down.BytesIn(fabric_->meter.Total(now)), tally.slots, tally.sums,
                tally.overflowed};
    }

    bool Over() const {
        return std::all_of(hosts_.begin(), hosts_.end(),
                           [](const auto& host) { return host->Finished(); });
    }

    /// The links between switches, leaf by leaf.
    void ReportInside(std::ostream& out) const {
        const auto& up = fabric_->Up();
        const auto& down = fabric_->Down();
        List(out, "inside_frames_up", up, OnLink(&Count::frames));
        List(out, "inside_bytes_up", up, OnLink(&Count::bytes));
        List(out, "inside_frames_down", down, OnLink(&Count::frames));
        List(out, "inside_bytes_down", down, OnLink(&Count::bytes));
        List(out, "inside_sums_up", up, OnLink(&Count::frames, Kind::SUM));
        List(out, "inside_features_up", up, OnLink(&Count::frames, Kind::FEATURE));
    }

    void ReportWorkers(std::ostream& out) const {
        List(out, "finished", hosts_,
             [this](const auto& host) { return host->FinishedAt() - began_; });
        List(out, "frames_up", up_, OnLink(&Count::frames));
        List(out, "bytes_up", up_, OnLink(&Count::bytes));
        List(out, "frames_down", down_, OnLink(&Count::frames));
        List(out, "bytes_down", down_, OnLink(&Count::bytes));
        List(out, "features_up", up_, OnLink(&Count::frames, Kind::FEATURE));
        List(out, "features_down", down_, OnLink(&Count::frames, Kind::FEATURE));
        List(out, "feature_bytes_down", down_, OnLink(&Count::bytes, Kind::FEATURE));
        List(out, "sums_down", down_, OnLink(&Count::frames, Kind::SUM));
        List(out, "sum_bytes_down", down_, OnLink(&Count::bytes, Kind::SUM));
        List(out, "notices", up_, OnLink(&Count::frames, Kind::NOTICE));
    }

    void ReportSeries(std::ostream& out) const {
        const auto& samples = series_->Samples();
        List(out, "series_at", samples, [this](const auto& it) { return it.at - began_; });
        List(out, "series_queue_bytes", samples, [](const auto& it) { return it.queue_bytes; });
        List(out, "series_slots", samples, [](const auto& it) { return it.slots; });
        List(out, "series_sums", samples, [](const auto& it) { return it.sums; });
        List(out, "series_overflowed", samples, [](const auto& it) { return it.overflowed; });
    }

    void ReportTrace(std::ostream& out) const {
        const auto& all = trace_.Arrivals();
        List(out, "trace_at", all, [this](const auto& it) { return it.at - began_; });
        List(out, "trace_at_switch", all,
             [](const auto& it) { return it.at_switch ? "true" : "false"; });
        List(out, "trace_worker", all, [](const auto& it) { return it.worker; });
        List(out, "trace_kind", all,
             [](const auto& it) { return static_cast<int>(it.packet.kind); });
        List(out, "trace_id", all, [](const auto& it) { return it.packet.id; });
        List(out, "trace_count", all, [](const auto& it) { return it.packet.count; });
    }

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

int main(int count, char** words) {
    // Without its parent nothing reads the output.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    try {
        ns3::Time::SetResolution(ns3::Time::PS);
        Simulation simulation(ParseOptions(count, words));
        simulation.Run();
        simulation.Report(std::cout);
        ns3::Simulator::Destroy();
    } catch (const std::exception& error) {
        std::cerr << error.what() << "\n";
        return kRefused;
    }
    return 0;
}
