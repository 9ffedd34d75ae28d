// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "options.h"

#include <cmath>
#include <sstream>

namespace {
// In round trips of an empty network: 40 microseconds with links of 100 Gbit/s and 2 microseconds.
constexpr Picoseconds kShortestTimeout = 10;

class Words {
  public:
    Words(int count, char** words) {
        for (int i = 1; i < count; ++i) {
            const std::string word = words[i];
            const size_t equals = word.find('=');
            if (equals == std::string::npos) {
                throw SimulationError("Write NAME=VALUE, not " + word + ".");
            }
            values_[word.substr(0, equals)] = word.substr(equals + 1);
        }
    }

    std::string Text(const std::string& name) const {
        const auto found = values_.find(name);
        if (found == values_.end()) {
            throw SimulationError("The option " + name + " is missing.");
        }
        return found->second;
    }

    double Number(const std::string& name) const { return std::stod(Text(name)); }

    uint32_t Whole(const std::string& name) const {
        return static_cast<uint32_t>(std::stoul(Text(name)));
    }

    std::vector<uint32_t> List(const std::string& name) const {
        std::vector<uint32_t> numbers;
        std::istringstream text(Text(name));
        for (std::string number; std::getline(text, number, ',');) {
            numbers.push_back(static_cast<uint32_t>(std::stoul(number)));
        }
        return numbers;
    }

  private:
    std::map<std::string, std::string> values_;
};
}  // namespace

Options ParseOptions(int count, char** arguments) {
    const Words words(count, arguments);
    Options options{
        .arrays = words.Text("arrays"),
        .workers = words.Whole("workers"),
        .leaves = words.Whole("leaves"),
        .spines = words.Whole("spines"),
        .completion = words.Text("completion") == "leaf" ? Completion::LEAF : Completion::SPINE,
        .blocks = words.Whole("blocks"),
        .fragments = words.Whole("fragments"),
        .together = words.Whole("together"),
        .fragment_bytes = words.List("fragment_bytes"),
        .opening = words.Whole("opening") != 0,
        .host_based = words.Whole("host_based") != 0,
        .packed_frame_bytes = words.Whole("packed_frame_bytes"),
        .up = {.bits_per_second = words.Number("bits_per_second"),
               .delay = std::stoll(words.Text("delay")),
               .overhead_bytes = words.Whole("overhead_bytes")},
        .down = {},
        .pace = {.window = words.Whole("window"),
                 .group = words.Whole("group"),
                 .groups_apart = words.Whole("groups_apart"),
                 .congestion_control = words.Whole("congestion_control") != 0,
                 .round_trip = std::stoll(words.Text("round_trip"))},
        .data_frame_bytes = words.Whole("data_frame_bytes"),
        .pass = std::stoll(words.Text("pass")),
        .pools = words.List("pools"),
        .background = {.load = words.Number("background_load"),
                       .seed = std::stoull(words.Text("background_seed"))},
        .trace = words.Whole("trace") != 0,
    };
    // The queue on the way up is the host's memory.
    options.down = options.up;
    options.down.buffer_bytes = words.Number("buffer_bytes");
    options.down.ecn_bytes = words.Number("ecn_bytes");
    options.down.loses = options.pools.empty() && options.leaves == 0;
    options.pace.losses = options.down.loses && std::isfinite(options.down.buffer_bytes);
    // A worker, the switch, and back.
    const Picoseconds empty = 2 * (options.up.delay + options.up.TimeOf(options.data_frame_bytes));
    const Picoseconds given = std::stoll(words.Text("timeout"));
    options.pace.shortest_timeout = given != 0 ? given : kShortestTimeout * empty;
    return options;
}
