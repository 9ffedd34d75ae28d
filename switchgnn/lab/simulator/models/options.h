// The options of a simulation, given as words NAME=VALUE.
#pragma once

#include "host.h"

#include <map>

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
    bool Flag(const std::string& name) const { return Text(name) == "True"; }
    double Number(const std::string& name) const { return std::stod(Text(name)); }
    Picoseconds Time(const std::string& name) const { return std::stoll(Text(name)); }

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

// In round trips of an empty network: 40 microseconds with links of 100 Gbit/s and 2 microseconds.
constexpr Picoseconds kShortestTimeout = 10;

/// As `Setup` (setup.py) and `NetworkOptions` (request.py) describe them.
struct Options : private Words {
    using Words::Words;

    /// The folder of the arrays.
    std::string arrays = Text("arrays");
    uint32_t workers = Whole("workers");
    /// 0 for a star.
    uint32_t leaves = Whole("leaves");
    uint32_t spines = Whole("spines");
    /// Which switches complete sums whose contributions come from several leaves: the spines, as in
    /// the P4 program, or the leaves of the destinations, which it does not implement.
    bool spines_complete = Text("completion") == "spine";
    uint32_t blocks = Whole("blocks");
    uint32_t fragments = Whole("fragments");
    uint32_t together = Whole("together");
    uint32_t rows = Whole("rows");
    uint32_t pools = Whole("pools");
    std::vector<uint32_t> fragment_bytes = List("fragment_bytes");
    std::vector<uint32_t> row_bytes = List("row_bytes");
    /// Whether barriers open the exchange.
    bool opening = Flag("opening");
    bool host_based = Flag("host_based");
    uint32_t packed_frame_bytes = Whole("packed_frame_bytes");
    std::vector<uint32_t> bank_slots = List("bank_slots");
    /// Time of one pass through the loop; 0: no limit.
    Picoseconds pass = Time("pass");
    /// Share of the rate of each link that flows in the background take on average; 0: none there.
    double background_load = Number("background_load");
    uint64_t background_seed = std::stoull(Text("background_seed"));
    bool trace = Flag("trace");
    LinkOptions up{.bits_per_second = Number("bits_per_second"),
                   .delay = Time("delay"),
                   .overhead_bytes = Whole("overhead_bytes")};
    LinkOptions down = Down();
    PaceOptions pace = Pace();

  private:
    /// The queue on the way up is the host's memory.
    LinkOptions Down() const {
        LinkOptions options = up;
        options.buffer_bytes = Number("buffer_bytes");
        options.ecn_bytes = Number("ecn_bytes");
        options.loses = bank_slots.empty() && leaves == 0;
        return options;
    }

    Rule Congestion() const {
        const std::string& name = Text("congestion");
        return name == "none" ? Rule::NONE : name == "paper" ? Rule::PAPER : Rule::DCTCP;
    }

    PaceOptions Pace() const {
        // A worker, the switch, and back.
        const Picoseconds empty = 2 * (up.delay + up.TimeOf(Whole("data_frame_bytes")));
        const Picoseconds given = Time("timeout");
        return {.window = Whole("window"),
                .group = Whole("group"),
                .groups_apart = Whole("groups_apart"),
                .congestion = Congestion(),
                .round_trip = Time("round_trip"),
                .losses = down.loses && std::isfinite(down.buffer_bytes),
                .shortest_timeout = given != 0 ? given : kShortestTimeout * empty};
    }
};
