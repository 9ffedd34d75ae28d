// The options of a simulation, given as words NAME=VALUE.
#pragma once

#include "background.h"
#include "host.h"
#include "link.h"

#include <cmath>
#include <map>
#include <sstream>
#include <string>
#include <vector>

/// Which switches of a leaf-spine complete sums whose contributions come from several leaves.
enum class Completion {
    /// The spines, as in the P4 program.
    SPINE,
    /// The leaves of the destinations: a variant that the P4 program does not implement.
    LEAF,
};

/// As `Setup` (setup.py) and `NetworkOptions` (request.py) describe them.
struct Options {
    /// The folder of the arrays.
    std::string arrays;
    uint32_t workers;
    /// 0 for a star.
    uint32_t leaves;
    uint32_t spines;
    Completion completion;
    uint32_t blocks;
    uint32_t fragments;
    uint32_t together;
    uint32_t rows;
    uint32_t pools;
    std::vector<uint32_t> fragment_bytes;
    /// Whether barriers open the exchange.
    bool opening;
    bool host_based;
    uint32_t packed_frame_bytes;
    LinkOptions up;
    LinkOptions down;
    PaceOptions pace;
    uint32_t data_frame_bytes;
    /// Time of one pass through the loop; 0: no limit.
    Picoseconds pass;
    std::vector<uint32_t> bank_slots;
    BackgroundOptions background;
    bool trace;
};

// In round trips of an empty network: 40 microseconds with links of 100 Gbit/s and 2 microseconds.
constexpr Picoseconds kShortestTimeout = 10;

class Words {
  public:
    Words(int count, char** words) {
        for (int i = 1; i < count; ++i) {
            const std::string word = words[i];
            const size_t equals = word.find('=');
            values_[word.substr(0, equals)] = word.substr(equals + 1);
        }
    }

    const std::string& Text(const std::string& name) const { return values_.at(name); }
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
        .rows = words.Whole("rows"),
        .pools = words.Whole("pools"),
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
        .bank_slots = words.List("bank_slots"),
        .background = {.load = words.Number("background_load"),
                       .seed = std::stoull(words.Text("background_seed"))},
        .trace = words.Whole("trace") != 0,
    };
    // The queue on the way up is the host's memory.
    options.down = options.up;
    options.down.buffer_bytes = words.Number("buffer_bytes");
    options.down.ecn_bytes = words.Number("ecn_bytes");
    options.down.loses = options.bank_slots.empty() && options.leaves == 0;
    options.pace.losses = options.down.loses && std::isfinite(options.down.buffer_bytes);
    // A worker, the switch, and back.
    const Picoseconds empty = 2 * (options.up.delay + options.up.TimeOf(options.data_frame_bytes));
    const Picoseconds given = std::stoll(words.Text("timeout"));
    options.pace.shortest_timeout = given != 0 ? given : kShortestTimeout * empty;
    return options;
}
