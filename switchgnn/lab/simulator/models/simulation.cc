// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "simulation.h"

#include "hosts/frame_pace.h"
#include "switches/leaf_spine.h"
#include "switches/star.h"

#include <algorithm>
#include <chrono>

Simulation::Simulation(const Options& options)
    : options_(options),
      arrays_(options.arrays),
      trace_(options.trace, options.workers)
{
    if (!options.host_based)
    {
        AddSchedule();
    }
    AddHosts();
    AddFabric();
    AddBackground();
    Connect();
    series_ = ns3::Create<Series>([this](Picoseconds now) { return Look(now); },
                                  [this] { return Over(); });
}

void
Simulation::AddFabric()
{
    if (options_.leaves == 0)
    {
        fabric_ = std::make_unique<Star>(options_, arrays_, schedule_.get());
    }
    else
    {
        fabric_ = std::make_unique<LeafSpineOptions>(options_, arrays_, schedule_.get(), trace_);
    }
}

void
Simulation::AddBackground()
{
    if (options_.background.load == 0)
    {
        return;
    }
    const auto over = [this] {
        if (!Over())
        {
            return false;
        }
        Close();
        return true;
    };
    background_ = ns3::Create<Background>(options_.background,
                                          FlowSizes(arrays_),
                                          options_.up,
                                          options_.pace,
                                          over);
}

void
Simulation::AddSchedule()
{
    schedule_ = std::make_unique<Schedule>(arrays_,
                                           options_.blocks,
                                           options_.fragments,
                                           options_.together,
                                           options_.fragment_bytes);
}

void
Simulation::AddHosts()
{
    const bool between_hosts = options_.packed_frame_bytes != 0;
    if (between_hosts && options_.pace.losses)
    {
        arrived_.emplace(arrays_.Get<uint64_t>("frame_indptr"));
    }
    for (uint32_t worker = 0; worker < options_.workers; ++worker)
    {
        if (!schedule_)
        {
            hosts_.push_back(MakePeer(worker));
        }
        else if (between_hosts)
        {
            hosts_.push_back(std::make_unique<MixedHost>(MakeWorker(worker), MakePeer(worker)));
        }
        else
        {
            hosts_.push_back(MakeWorker(worker));
        }
    }
}

std::unique_ptr<Worker>
Simulation::MakeWorker(uint32_t worker) const
{
    return std::make_unique<Worker>(*schedule_, worker, options_.pace, options_.opening);
}

std::unique_ptr<Peer>
Simulation::MakePeer(uint32_t worker)
{
    const auto indptr = arrays_.Get<uint64_t>("frame_indptr");
    const uint64_t first = indptr[worker];
    const uint64_t count = indptr[worker + 1] - first;
    const bool longer = options_.packed_frame_bytes != FrameBytes(Kind::FEATURE);
    const PaceOptions pace =
        longer ? PaceInFrames(options_.pace, options_.packed_frame_bytes) : options_.pace;
    auto peer =
        std::make_unique<Peer>(worker,
                               pace,
                               arrays_.Get<uint8_t>("frame_to").subspan(first, count),
                               arrays_.Get<uint8_t>("frame_confirms").subspan(first, count),
                               arrays_.Get<uint16_t>("frame_bytes").subspan(first, count),
                               arrays_.Get<uint64_t>("awaited")[worker]);
    if (arrived_)
    {
        peer->ExpectLosses(*arrived_);
    }
    return peer;
}

void
Simulation::Connect()
{
    for (uint32_t worker = 0; worker < options_.workers; ++worker)
    {
        Receiver& host = *hosts_[worker];
        Receiver& edge = fabric_->EdgeOf(worker);
        Receiver& top = background_ ? background_->BeforeSwitch(edge) : edge;
        Receiver& bottom = background_ ? background_->BeforeHost(host) : host;
        up_.push_back(ns3::Create<Link>(options_.up, top, worker, nullptr, trace_));
        down_.push_back(
            ns3::Create<Link>(options_.down, bottom, worker, &fabric_->meter, trace_));
        hosts_[worker]->Attach(*up_.back());
        fabric_->Attach(worker, *down_.back());
        if (background_)
        {
            background_->Attach(*up_.back(), *down_.back());
        }
    }
}

void
Simulation::Run()
{
    const auto started = std::chrono::steady_clock::now();
    if (background_)
    {
        background_->Start(0);
        opening_ = ns3::Create<Timer>([this](Picoseconds now) { Open(now); });
        opening_->SetTo(background_->WarmUp());
    }
    else
    {
        Open(0);
    }
    ns3::Simulator::Run();
    events_ = ns3::Simulator::GetEventCount();
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    if (!Over())
    {
        throw SimulationError("Nothing happens any more, but workers wait: the plan is wrong.");
    }
    if (!background_)
    {
        Close();
    }
}

void
Simulation::Open(Picoseconds now)
{
    began_ = now;
    fabric_->meter.Forget();
    for (const auto& host : hosts_)
    {
        host->Start(now);
    }
    series_->Start(now);
}

void
Simulation::Close()
{
    largest_queue_ = fabric_->meter.Largest();
    largest_port_queue_ = fabric_->meter.LargestPort();
}

Sample
Simulation::Look(Picoseconds now)
{
    const Tally tally = fabric_->Count();
    return {now,
            options_.down.BytesIn(fabric_->meter.Total(now)),
            tally.slots,
            tally.sums,
            tally.overflowed};
}

bool
Simulation::Over() const
{
    return std::all_of(hosts_.begin(), hosts_.end(), [](const auto& host) {
        return host->Finished();
    });
}
