// Workers around a fabric: one switch, or leaves and spines. In reading order, the models are the
// event queue (events.h), packets and links (link.h), hosts (host.h, peer.h, worker.h), plans
// (schedule.h), switches and networks of them (switch.h, fabrics.h), and background.h. A header
// includes those that it builds upon, and of the standard library what these do not.

#include "background.h"
#include "fabrics.h"
#include "peer.h"
#include "worker.h"

#include <sys/prctl.h>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iomanip>
#include <iostream>

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
    return [number](const Link& link) { return link.Sent().*number; };
}

auto OnLink(uint64_t Count::*number, Kind kind) {
    return [number, kind](const Link& link) { return link.Sent(kind).*number; };
}

class Simulation {
  public:
    explicit Simulation(const Options& options)
        : options_(options),
          arrays_(options.arrays),
          trace_(options.trace, options.workers),
          schedule_(options.host_based ? nullptr : std::make_unique<Schedule>(arrays_, options)),
          fabric_(options, arrays_, schedule_.get(), trace_) {
        if (options.packed_frame_bytes != 0) {
            arrived_.emplace(arrays_.Get<uint64_t>("frame_indptr"));
        }
        if (options.background_load != 0) {
            background_ = std::make_unique<Background>(options_, arrays_, [this] {
                const bool over = Over();
                if (over) Close();
                return over;
            });
        }
        for (uint32_t worker = 0; worker < options.workers; ++worker) Connect(worker);
    }

    /// Exchange once, and stop when all are through.
    void Run() {
        const auto started = std::chrono::steady_clock::now();
        if (background_) {
            background_->Start(0);
            opening_.SetTo(background_->WarmUp());
        } else {
            Open(0);
        }
        events.Run();
        seconds_ =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
        if (!Over()) {
            throw SimulationError("Nothing happens any more, but workers wait: the plan is wrong.");
        }
        if (!background_) Close();
    }

    /// Write the measurements as one JSON object: `SimulationRun` of simulation.py.
    void Report(std::ostream& out) const {
        out << std::setprecision(15) << std::boolalpha;
        JsonObject report(out);
        report.Put("events", events.Count());
        report.Put("wall_seconds", seconds_);
        report.Put("peak_memory_bytes", PeakMemory());
        report.Put("max_queue_bytes", options_.down.BytesIn(queues_.all));
        report.Put("max_port_queue_bytes", options_.down.BytesIn(queues_.port));
        ReportCounts(report);
        ReportWorkers(report);
        ReportSeries(report.Object("series"));
        report.Objects("trace", trace_.arrivals, [this](JsonObject& one, const Arrival& it) {
            one.Put("picoseconds", it.at - began_);
            one.Put("at_switch", it.at_switch);
            one.Put("worker", it.worker);
            one.Put("kind", static_cast<int>(it.packet.kind));
            one.Put("id", it.packet.id);
            one.Put("count", it.packet.count);
        });
        if (!fabric_.up.empty()) ReportInside(report.Object("inside"));
        if (background_) background_->Report(report.Object("background"), options_.trace);
    }

  private:
    std::unique_ptr<Peer> MakePeer(uint32_t worker) {
        const bool longer = options_.packed_frame_bytes != FrameBytes(Kind::FEATURE);
        const PaceOptions pace =
            longer ? PaceInFrames(options_.pace, options_.packed_frame_bytes) : options_.pace;
        // A full frame, and its share of the acknowledgement that the link carries for another one.
        const auto time_of = [this](uint32_t bytes) {
            return options_.up.TimeOf(bytes + options_.up.overhead_bytes);
        };
        const Picoseconds slot =
            time_of(options_.packed_frame_bytes) + time_of(FrameBytes(Kind::ACK)) / pace.group;
        return std::make_unique<Peer>(worker, pace, arrays_, slot, *arrived_);
    }

    /// Add a worker, of the switch, of the other hosts, or of both, and its links.
    void Connect(uint32_t worker) {
        Switch& edge = fabric_.EdgeOf(worker);
        Link& up = up_.emplace_back(options_.up, edge, worker, nullptr, trace_);
        const size_t first = hosts_.size();
        if (schedule_) {
            hosts_.push_back(
                std::make_unique<Worker>(*schedule_, worker, options_.pace, options_.opening));
        }
        if (arrived_) hosts_.push_back(MakePeer(worker));
        Link& down =
            down_.emplace_back(options_.down, *hosts_[first], worker, &fabric_.meter, trace_);
        down.TakeBetweenHosts(*hosts_.back());
        for (size_t i = first; i < hosts_.size(); ++i) hosts_[i]->Attach(up);
        edge.Attach(down);
        if (background_) background_->Attach(up, down);
    }

    /// Begin the exchange.
    void Open(Picoseconds now) {
        began_ = now;
        fabric_.meter.maxima = {};
        for (const auto& host : hosts_) host->Start(now);
        series_.Start(now);
    }

    /// End the exchange: record the maxima of its queues.
    void Close() { queues_ = fabric_.meter.maxima; }

    Sample Look(Picoseconds now) {
        const Tally tally = fabric_.Count();
        double bytes = 0;
        for (const auto* links : {&up_, &down_}) {
            for (const Link& link : *links) bytes += link.BytesThrough(now);
        }
        return {now, options_.down.BytesIn(fabric_.meter.Total(now)), tally.slots, tally.sums,
                tally.overflowed, bytes};
    }

    bool Over() const {
        return std::ranges::all_of(hosts_, [](const auto& host) { return host->Finished(); });
    }

    void ReportCounts(JsonObject& report) const {
        uint64_t marked = 0;
        uint64_t lost = 0;
        for (const auto* links : {&down_, &fabric_.up, &fabric_.down}) {
            marked += Total(*links, &Link::marked);
            lost += Total(*links, &Link::lost);
        }
        const Tally tally = fabric_.Count();
        report.Put("marked", marked);
        report.Put("window_cuts", Total(hosts_, &Host::Cuts));
        report.Put("lost", lost);
        report.Put("recalled", Total(hosts_, &Host::recalled));
        report.Put("sent_again", tally.sent_again + Total(hosts_, &Host::sent_again));
        report.Put("repeated", Total(hosts_, &Host::repeated));
        report.Put("barriers", tally.barriers);
        report.Put("sums", tally.sums);
        report.Put("overflowed", tally.overflowed);
        report.Put("passes", tally.passes);
        report.Put("contributions", tally.contributions);
        report.Put("loop_passes", tally.loop_passes);
        report.Put("max_loop_queue", tally.max_loop_queue);
        report.Put("max_slots", tally.max_slots);
    }

    void ReportWorkers(JsonObject& report) const {
        std::vector<Picoseconds> finished(options_.workers, 0);
        for (const auto& host : hosts_) {
            Picoseconds& last = finished[host->Worker()];
            last = std::max(last, host->FinishedAt() - began_);
        }
        report.List("finished", finished, [](Picoseconds at) { return at; });
        ReportLinks(report, up_, down_);
        report.List("features_down", down_, OnLink(&Count::frames, Kind::FEATURE));
        report.List("feature_bytes_down", down_, OnLink(&Count::bytes, Kind::FEATURE));
        report.List("sums_down", down_, OnLink(&Count::frames, Kind::SUM));
        report.List("sum_bytes_down", down_, OnLink(&Count::bytes, Kind::SUM));
        report.List("notices", up_, OnLink(&Count::frames, Kind::NOTICE));
    }

    /// The links between switches, leaf by leaf.
    void ReportInside(JsonObject&& report) const {
        ReportLinks(report, fabric_.up, fabric_.down);
        report.List("sums_up", fabric_.up, OnLink(&Count::frames, Kind::SUM));
    }

    static void ReportLinks(JsonObject& report, const Links& up, const Links& down) {
        report.List("frames_up", up, OnLink(&Count::frames));
        report.List("bytes_up", up, OnLink(&Count::bytes));
        report.List("frames_down", down, OnLink(&Count::frames));
        report.List("bytes_down", down, OnLink(&Count::bytes));
        report.List("features_up", up, OnLink(&Count::frames, Kind::FEATURE));
    }

    void ReportSeries(JsonObject&& report) const {
        const auto& samples = series_.samples;
        report.List("seconds", samples, [this](const auto& it) {
            return static_cast<double>(it.at - began_) / kPicosecondsPerSecond;
        });
        report.List("queue_bytes", samples, &Sample::queue_bytes);
        report.List("slots", samples, &Sample::slots);
        report.List("sums", samples, &Sample::sums);
        report.List("overflowed", samples, &Sample::overflowed);
        report.List("link_bytes", samples, &Sample::link_bytes);
    }

    const Options& options_;
    Arrays arrays_;
    Trace trace_;
    std::unique_ptr<Schedule> schedule_;
    Fabric fabric_;
    std::optional<Arrived> arrived_;
    std::vector<std::unique_ptr<Host>> hosts_;
    Links up_;
    Links down_;
    Series series_{[this](Picoseconds now) { return Look(now); }, [this] { return Over(); }};
    std::unique_ptr<Background> background_;
    Timer opening_{[this](Picoseconds now) { Open(now); }};
    // When the exchange began.
    Picoseconds began_ = 0;
    QueueMeter::Maxima queues_;
    double seconds_ = 0;
};

int main(int count, char** words) {
    // Without its parent nothing reads the output.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    try {
        const Options options(count, words);
        Simulation simulation(options);
        simulation.Run();
        simulation.Report(std::cout);
    } catch (const std::exception& error) {
        std::cerr << error.what() << "\n";
        return kRefused;
    }
    return 0;
}
