// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "star.h"

#include "leaf_spine.h"
#include "one_switch.h"

#include <algorithm>
#include <chrono>

Star::Star(const Options& options)
    : options_(options),
      arrays_(options.arrays),
      trace_(options.trace, options.workers)
{
    if (options.host_based)
    {
        AddPeers();
    }
    else
    {
        AddWorkers();
    }
    AddFabric();
    Connect();
    series_ = ns3::Create<Series>([this](Picoseconds now) { return Look(now); },
                                  [this] { return Over(); });
}

void
Star::AddFabric()
{
    if (options_.leaves == 0)
    {
        fabric_ = std::make_unique<OneSwitch>(options_, arrays_, schedule_.get());
    }
    else
    {
        fabric_ = std::make_unique<LeafSpine>(options_, arrays_, schedule_.get(), trace_);
    }
}

void
Star::AddWorkers()
{
    schedule_ = std::make_unique<Schedule>(arrays_,
                                           options_.blocks,
                                           options_.fragments,
                                           options_.together);
    for (uint32_t worker = 0; worker < options_.workers; ++worker)
    {
        hosts_.push_back(std::make_unique<Worker>(*schedule_, worker, options_.pace));
    }
}

void
Star::AddPeers()
{
    const auto indptr = arrays_.Get<uint64_t>("send_indptr");
    const auto to = arrays_.Get<uint8_t>("frame_to");
    const auto confirms = arrays_.Get<uint8_t>("frame_confirms");
    const auto awaited = arrays_.Get<uint64_t>("awaited");
    for (uint32_t worker = 0; worker < options_.workers; ++worker)
    {
        const uint64_t first = indptr[worker];
        const uint64_t count = indptr[worker + 1] - first;
        hosts_.push_back(std::make_unique<Peer>(worker,
                                                options_.pace,
                                                to.subspan(first, count),
                                                confirms.subspan(first, count),
                                                awaited[worker]));
    }
}

void
Star::Connect()
{
    for (uint32_t worker = 0; worker < options_.workers; ++worker)
    {
        up_.push_back(
            ns3::Create<Link>(options_.up, fabric_->EdgeOf(worker), worker, nullptr, trace_));
        down_.push_back(
            ns3::Create<Link>(options_.down, *hosts_[worker], worker, &fabric_->meter, trace_));
        hosts_[worker]->Attach(*up_.back());
        fabric_->Attach(worker, *down_.back());
    }
}

void
Star::Run()
{
    const auto started = std::chrono::steady_clock::now();
    for (const auto& host : hosts_)
    {
        host->Start(0);
    }
    series_->Start(0);
    ns3::Simulator::Run();
    events_ = ns3::Simulator::GetEventCount();
    seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    if (!Over())
    {
        throw SimulationError("Nothing happens any more, but workers wait: the plan is wrong.");
    }
}

Sample
Star::Look(Picoseconds now)
{
    const Tally tally = fabric_->Count();
    return {now,
            options_.down.BytesIn(fabric_->meter.Total(now)),
            tally.slots,
            tally.sums,
            tally.overflowed};
}

bool
Star::Over() const
{
    return std::all_of(hosts_.begin(), hosts_.end(), [](const auto& host) {
        return host->Finished();
    });
}
