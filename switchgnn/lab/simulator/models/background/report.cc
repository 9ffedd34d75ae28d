// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The numbers of the background.
#include "background/background.h"
#include "base/json.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace
{
constexpr double kHigh = 0.99;
} // namespace

/// How many times as long as in an empty network, smallest first.
std::vector<double>
Background::Slowdowns() const
{
    std::vector<double> slowdowns;
    for (const auto& flow : flows_)
    {
        const auto took = static_cast<double>(flow->Arrived() - flow->Began());
        slowdowns.push_back(took / static_cast<double>(flow->Ideal(link_)));
    }
    std::sort(slowdowns.begin(), slowdowns.end());
    return slowdowns;
}

void
Background::Report(std::ostream& out, bool trace) const
{
    const auto total = [](const auto& items, auto number) {
        const auto add = [&](uint64_t sum, const auto& item) { return sum + number(*item); };
        return std::accumulate(items.begin(), items.end(), uint64_t{0}, add);
    };
    using Each = const Flow&;
    const std::vector<double> slowdowns = Slowdowns();
    const size_t count = slowdowns.size();
    const double sum = std::accumulate(slowdowns.begin(), slowdowns.end(), 0.0);
    const auto high = static_cast<size_t>(std::ceil(kHigh * static_cast<double>(count)));
    out << "\"flows\": " << count
        << ", \"flows_finished\": " << total(flows_, [](Each f) { return f.Finished() ? 1 : 0; })
        << ", \"seconds\": " << static_cast<double>(ended_) / kPicosecondsPerSecond
        << ", \"bytes\": " << total(flows_, [](Each f) { return f.FrameBytes(); })
        << ", \"bytes_sent\": " << total(flows_, [](Each f) { return f.BytesSent(); })
        << ", \"bytes_arrived\": " << total(flows_, [](Each f) { return f.BytesArrived(); })
        << ", \"bytes_repeated\": " << total(flows_, [](Each f) { return f.BytesRepeated(); })
        << ", \"bytes_lost\": "
        << total(down_, [](const Link& link) { return link.BackgroundLost().bytes; })
        << ", \"lost\": "
        << total(down_, [](const Link& link) { return link.BackgroundLost().frames; })
        << ", \"marked\": "
        << total(down_, [](const Link& link) { return link.BackgroundMarked(); })
        << ", \"window_cuts\": " << total(flows_, [](Each f) { return f.Cuts(); })
        << ", \"mean_slowdown\": " << (count ? sum / static_cast<double>(count) : 0)
        << ", \"high_slowdown\": " << (count ? slowdowns[high - 1] : 0);
    if (trace)
    {
        ReportFlows(out);
    }
}

void
Background::ReportFlows(std::ostream& out) const
{
    using Each = std::unique_ptr<Flow>;
    List(out, "flow_began", flows_, [](const Each& flow) { return flow->Began(); });
    List(out, "flow_arrived", flows_, [](const Each& flow) { return flow->Arrived(); });
    List(out, "flow_from", flows_, [](const Each& flow) { return flow->What().from; });
    List(out, "flow_to", flows_, [](const Each& flow) { return flow->What().to; });
    List(out, "flow_size", flows_, [](const Each& flow) { return flow->What().bytes; });
}
