// The aggregators of a switch, and switches with links to workers: they forward, or add up;
// docs/protocol.md.
#pragma once

#include "schedule.h"

#include <numeric>
#include <optional>

/// What the switches have done so far.
struct Tally {
    /// Sums that left for a worker, or wait on its shelf.
    uint64_t sums = 0;
    /// Contributions that found no slot on all their way.
    uint64_t overflowed = 0;
    /// Sums that a worker recalled.
    uint64_t sent_again = 0;
    /// Of each switch that has workers.
    uint64_t barriers = 0;
    uint64_t passes = 0;
    uint64_t contributions = 0;
    uint64_t loop_passes = 0;
    /// The most that waited at one switch.
    uint64_t max_loop_queue = 0;
    /// Slots that hold an unfinished sum, and the most there have been; of several switches those
    /// of the one that has most.
    uint64_t slots = 0;
    uint64_t max_slots = 0;
};

enum class Fate { KEPT, COMPLETED, OVERFLOWED };

/// A row is a destination in a block. With a plan each has a slot of its own in each pool; with the
/// strawman they compete for those of their bank, first come, first served. Counts what happens.
class Slots {
  public:
    /// options: a slot holds `together` rows, the fragments of a destination.
    /// expected: the contributions to each row, in index of those that the arrays have.
    /// completes: whether the sum of such a row is complete then, or else a part; empty: all are.
    Slots(const Options& options, const Arrays& arrays, std::span<const uint16_t> expected,
          std::function<bool(uint32_t)> completes = {})
        : options_(options),
          completes_(std::move(completes)),
          rows_of_pool_(expected.size() * options.together),
          sum_indptr_(arrays.Get<uint64_t>("sum_indptr")),
          sum_worker_(arrays.Get<uint8_t>("sum_worker")) {
        const auto worker = arrays.Get<uint8_t>("row_worker");
        const auto bank = arrays.Get<uint8_t>("row_bank");
        rows_.resize(rows_of_pool_ * options.pools);
        open_.resize(expected.size() * options.pools);
        for (size_t i = 0; i < rows_.size(); ++i) {
            const size_t planned = i % rows_of_pool_ / together_;
            const uint8_t shared = free_.empty() ? 0 : bank[planned] % free_.size();
            rows_[i] = {.expected = expected[planned], .worker = worker[planned], .bank = shared};
        }
        const auto received = arrays.Get<uint64_t>("receive_indptr");
        const auto row = arrays.Get<uint32_t>("receive_row");
        for (size_t share = 1; share < received.size(); ++share) {
            const auto mine = row.subspan(received[share - 1], received[share] - received[share - 1]);
            const auto whole = [this](uint32_t at) { return Completes(at * together_); };
            sums_.push_back(std::ranges::count_if(mine, whole));
        }
    }

    /// Add a packet to a row in its pool. Return what leaves, if anything does. A sum is marked if any
    /// of its contributions was, as in p4src/banks.p4.
    std::optional<Packet> Add(uint32_t row, const Packet& packet) {
        ++tally.contributions;
        Packet leaving{.kind = packet.kind, .ecn = packet.ecn, .count = packet.count, .id = row,
                       .group = packet.group, .turn = packet.turn, .asked = packet.asked,
                       .bytes = packet.bytes};
        const size_t at = At(row, packet.turn);
        Row& held = rows_[at];
        const bool begins = held.added == 0;
        const Fate fate =
            free_.empty() ? AddPlanned(at, leaving.count) : AddShared(at, leaving.count);
        if (fate != Fate::OVERFLOWED) {
            held.marked = packet.ecn || (!begins && held.marked);
            held.bytes = std::max(packet.bytes, begins ? uint16_t{0} : held.bytes);
        }
        if (fate == Fate::KEPT) return std::nullopt;
        if (fate == Fate::COMPLETED) {
            leaving.kind = Kind::SUM;
            leaving.ecn = held.marked;
            leaving.bytes = held.bytes;
        }
        tally.overflowed += fate == Fate::OVERFLOWED;
        tally.sums += leaving.kind == Kind::SUM;
        return leaving;
    }

    /// Put a complete sum on the shelf of its worker (p4src/bundle.p4). Return whether it leaves with
    /// what is there: when it fills the bundle, or is the worker's last one of the unit from here.
    /// A part leaves alone.
    bool Pack(Packet& sum) {
        if (options_.rows == 1) return true;
        const uint32_t unit = sum.turn - options_.pools, fragment = sum.id % together_;
        const size_t length = unit / options_.blocks + fragment;
        if (!Completes(sum.id)) {
            sum.bytes = static_cast<uint16_t>(options_.row_bytes[length]);
            return true;
        }
        const uint32_t worker = WorkerOf(sum.id), pool = sum.turn % options_.pools;
        Shelf& shelf = shelves_[(worker * options_.pools + pool) * together_ + fragment];
        sum.bytes = static_cast<uint16_t>(options_.fragment_bytes[length] + kPlacesBytes);
        sum.others = shelf.sums++ % options_.rows;
        const uint64_t all = sums_[worker * options_.blocks + unit % options_.blocks];
        shelf.marked |= sum.ecn;
        if (shelf.sums < all && sum.others + 1U < options_.rows) {
            shelf.other[sum.others] = sum.id;
            return false;
        }
        sum.other = shelf.other;
        sum.ecn = std::exchange(shelf.marked, false);
        shelf.sums %= all;
        return true;
    }

    /// The worker that holds the destination of a row.
    uint32_t WorkerOf(uint32_t row) const { return rows_[row].worker; }

    /// The workers that get the sum of a row, ascending: that one, or of a vertex cut all that
    /// contribute.
    std::span<const uint8_t> ReceiversOf(uint32_t row) const {
        const uint64_t first = sum_indptr_[row / together_];
        return sum_worker_.subspan(first, sum_indptr_[row / together_ + 1] - first);
    }

    /// Whether the sum of a row is complete with all that comes here, or else a part.
    bool Completes(uint32_t row) const { return !completes_ || completes_(row / together_); }

    /// Note a sum that has left. It stays in its slot until a later unit overwrites it.
    void Note(const Packet& sum) {
        rows_[At(sum.id, sum.turn)].left = {sum.turn, sum.count, sum.bytes};
    }

    /// Make an answer to a RECALL of a row: the sum if it has left, or MISSING.
    Packet AnswerTo(const Packet& recall) const {
        const Left& left = rows_[At(recall.id, recall.turn)].left;
        if (left.turn != recall.turn) {
            return {.kind = Kind::MISSING, .id = recall.id, .turn = recall.turn};
        }
        return {.kind = Kind::SUM, .count = left.count, .id = recall.id, .turn = recall.turn,
                .bytes = left.bytes};
    }

    /// Refuse to end a unit while a sum of it is incomplete.
    void CheckComplete(uint32_t turn) const {
        if (unfinished_[turn % unfinished_.size()] != 0) {
            throw SimulationError("All workers are done with a block, but sums are incomplete.");
        }
    }

    Tally tally;

  private:
    struct Left {
        uint32_t turn = 0;  // 0, an opening: it has not left
        uint16_t count = 0;
        uint16_t bytes = 0;
    };

    struct Row {
        uint16_t expected;
        uint16_t seen = 0;
        uint16_t added = 0;
        /// Of the longest frame so far.
        uint16_t bytes = 0;
        uint8_t worker;
        uint8_t bank;
        /// Whether any contribution to what it holds was marked.
        bool marked = false;
        Left left = {};
    };

    /// The sums of a worker that are complete in a unit, and those of them that have not left.
    struct Shelf {
        uint64_t sums = 0;
        bool marked = false;
        std::array<uint32_t, kMostRows - 1> other;
    };

    size_t At(uint32_t row, uint32_t turn) const {
        return turn % unfinished_.size() * rows_of_pool_ + row;
    }

    /// A sum begins: the slot is taken with the first one in it.
    void Open(size_t at) {
        if (open_[at / together_]++ != 0) return;
        ++unfinished_[at / rows_of_pool_];
        tally.max_slots = std::max(tally.max_slots, ++tally.slots);
        if (!free_.empty()) --free_[rows_[at].bank];
    }

    /// A sum is complete, and `count` becomes all contributions in it. The slot is free after the
    /// last one in it.
    Fate Close(size_t at, uint16_t& count) {
        count = std::exchange(rows_[at].added, 0);
        if (--open_[at / together_] == 0) {
            --unfinished_[at / rows_of_pool_];
            --tally.slots;
            if (!free_.empty()) ++free_[rows_[at].bank];
        }
        return Fate::COMPLETED;
    }

    Fate AddPlanned(size_t at, uint16_t& count) {
        Row& row = rows_[at];
        if (row.added == 0) Open(at);
        row.added += count;
        if (row.added < row.expected) return Fate::KEPT;
        if (row.added > row.expected) {
            throw SimulationError(
                "A slot got more contributions than it expects: the plan is wrong.");
        }
        return Close(at, count);
    }

    /// As p4src/strawman/banks.p4.
    Fate AddShared(size_t at, uint16_t& count) {
        Row& row = rows_[at];
        row.seen += count;
        const bool last = row.seen == row.expected;
        if (last) row.seen = 0;
        if (row.added != 0) {
            row.added += count;
            return last ? Close(at, count) : Fate::KEPT;
        }
        if (open_[at / together_] == 0 && free_[row.bank] == 0) return Fate::OVERFLOWED;
        // It would give its slot back at once.
        if (last) return Fate::COMPLETED;
        row.added = count;
        Open(at);
        return Fate::KEPT;
    }

    const Options& options_;
    std::function<bool(uint32_t)> completes_;
    // By worker, pool and fragment of those exchanged together.
    std::vector<Shelf> shelves_{size_t{options_.workers} * options_.pools * options_.together};
    // Of each worker in each block, those that are complete here.
    std::vector<uint64_t> sums_;
    uint32_t together_ = options_.together;
    size_t rows_of_pool_;
    // Pool by pool.
    std::vector<Row> rows_;
    // Unfinished sums in each slot.
    std::vector<uint8_t> open_;
    // Slots of each pool that hold some.
    std::vector<uint64_t> unfinished_ = std::vector<uint64_t>(options_.pools);
    // Of each bank of the strawman.
    std::vector<uint32_t> free_ = options_.bank_slots;
    std::span<const uint64_t> sum_indptr_;
    std::span<const uint8_t> sum_worker_;
};

/// The barriers of a switch, one for each pool.
class Barriers {
  public:
    explicit Barriers(const Options& options) : turn_(options.pools), done_(options.pools) {
        std::iota(turn_.begin(), turn_.end(), options.opening ? 0 : options.pools);
    }

    /// Refuse what would overwrite slots of a unit in flight.
    void CheckTurn(const Packet& packet) const {
        if (packet.turn != turn_[packet.turn % turn_.size()]) {
            throw SimulationError("A worker has begun a unit while its slots are in use.");
        }
    }

    /// Take a DONE; return whether as many as there are have reported.
    bool Collect(const Packet& packet, size_t there) {
        CheckTurn(packet);
        uint32_t& done = done_[packet.turn % done_.size()];
        if (++done < there) return false;
        done = 0;
        return true;
    }

    /// Give the next unit of the pool its turn.
    void Pass(uint32_t turn) { turn_[turn % turn_.size()] += turn_.size(); }

  private:
    std::vector<uint32_t> turn_;
    std::vector<uint32_t> done_;
};

/// A packet between two passes.
struct Circling {
    Packet packet;
    /// What is left to contribute.
    Schedule::Contributions left;
    /// Only the acknowledgement is left, which had to wait for a sum to leave.
    bool through = false;
};

/// Recirculation: a port with a rate. A recirculated packet makes all its remaining passes in a
/// row, one per service time, so there is one event per waiting packet, not one per pass.
class Loop : public Alarm {
  public:
    /// Makes a pass, and returns whether another one is needed.
    using MakePass = std::function<bool(Circling& circling, Picoseconds at)>;

    /// service: time of one pass; 0 when the rate is not limited.
    Loop(MakePass make_pass, Picoseconds service)
        : make_pass_(std::move(make_pass)), service_(service) {}

    void Add(const Circling& circling, Picoseconds now) {
        if (waiting_.empty() && free_at_ <= now) {
            Serve(circling, now);
            return;
        }
        waiting_.push_back(circling);
        longest = std::max<uint64_t>(longest, waiting_.size());
        if (!Pending()) Set(free_at_);
    }

    uint64_t passes = 0;
    /// The most packets that waited at once.
    uint64_t longest = 0;

  private:
    void Ring(Picoseconds now) override {
        const Circling next = waiting_.front();
        waiting_.pop_front();
        Serve(next, now);
        if (!waiting_.empty()) Set(free_at_);
    }

    void Serve(Circling circling, Picoseconds now) {
        free_at_ = now;
        do {
            free_at_ += service_;
            ++passes;
        } while (make_pass_(circling, free_at_));
    }

    MakePass make_pass_;
    Picoseconds service_;
    Picoseconds free_at_ = 0;
    std::deque<Circling> waiting_;
};

/// Ports to workers, or of a spine to leaves.
class Switch : public Receiver {
  public:
    /// Attach the link down to a worker or leaf; in their order.
    void Attach(Link& down) { down_.push_back(&down); }
    /// What it has added up; nothing if it only forwards.
    virtual Tally Count() const { return {}; }

  protected:
    std::vector<Link*> down_;
};

/// A packet that leaves the loop for a worker.
struct Leaving {
    Packet packet;
    uint32_t worker;
};

/// A switch that adds what the workers attached to it send, with a loop for further passes.
class AddingSwitch : public Switch, private Delayed<Leaving> {
  public:
    AddingSwitch(const Schedule& schedule, Slots slots, const Options& options)
        : slots_(std::move(slots)),
          schedule_(schedule),
          barriers_(options),
          loop_([this](Circling& circling, Picoseconds at) { return Pass(circling, at); },
                options.pass) {}

    void Receive(const Packet& packet, uint32_t, Picoseconds now) override {
        if (packet.between_hosts) {
            down_[packet.id]->Send(packet, now);
        } else if (packet.kind == Kind::FEATURE) {
            Take(packet, now);
        } else if (packet.kind == Kind::DONE) {
            if (barriers_.Collect(packet, down_.size())) Done(packet.turn, now);
        } else if (packet.kind == Kind::RECALL) {
            Recall(packet, now);
        } else if (packet.kind == Kind::NOTICE) {
            Notice(packet, now);
        }
    }

    Tally Count() const override {
        Tally tally = slots_.tally;
        tally.loop_passes = loop_.passes;
        tally.max_loop_queue = loop_.longest;
        return tally;
    }

  protected:
    /// Send a packet on its way to a worker, or, for a sum, on the way to the worker that gets it.
    /// A sum stays in its slot while it is in a queue, and when it is lost.
    virtual void Send(const Packet& packet, uint32_t worker, Picoseconds now) {
        if (packet.kind == Kind::SUM) slots_.Note(packet);
        down_[worker]->Send(packet, now);
    }

    /// All workers that are attached here are done with a unit.
    virtual void Done(uint32_t turn, Picoseconds now) { Advance(turn, now); }

    /// A worker has got a marked packet.
    virtual void Notice(const Packet& packet, Picoseconds now) { TellAll(packet, now); }

    /// Add a packet to a row. If that ends the pass, return whether something left. A sum that
    /// returns to the sender, too, acknowledges the packet.
    std::optional<bool> Add(uint32_t row, Packet& packet, Picoseconds at) {
        std::optional<Packet> leaving = slots_.Add(row, packet);
        if (!leaving) return std::nullopt;
        if (!slots_.Pack(*leaving)) {
            slots_.Note(*leaving);
            return false;
        }
        if (!slots_.Completes(row)) {
            Leave(*leaving, slots_.WorkerOf(row), at);
            return true;
        }
        bool returns = false;
        for (const uint32_t worker : slots_.ReceiversOf(row)) {
            returns |= worker == packet.worker;
            leaving->echo = packet.echo && worker == packet.worker;
            Leave(*leaving, worker, at);
        }
        packet.echo &= !returns;
        return true;
    }

    /// Send now, or when the loop lets it go.
    void Leave(const Packet& packet, uint32_t worker, Picoseconds at) {
        if (at == events.Now()) {
            Send(packet, worker, at);
        } else {
            Delay({packet, worker}, at);
        }
    }

    /// Let the next unit of the pool begin.
    void Advance(uint32_t turn, Picoseconds now) {
        slots_.CheckComplete(turn);
        barriers_.Pass(turn);
        ++slots_.tally.barriers;
        TellAll({.kind = Kind::ADVANCE, .turn = turn}, now);
    }

    /// The number of the worker whose link was attached at this index.
    virtual uint32_t WorkerAt(uint32_t index) const { return index; }
    /// Send a packet to all workers that are attached here.
    void TellAll(const Packet& message, Picoseconds now) {
        for (uint32_t index = 0; index < down_.size(); ++index) {
            Packet packet = message;
            packet.worker = static_cast<uint16_t>(WorkerAt(index));
            down_[index]->Send(packet, now);
        }
    }

    Slots slots_;

  private:
    void Out(const Leaving& leaving, Picoseconds now) override {
        Send(leaving.packet, leaving.worker, now);
    }

    /// Make a pass; return whether another one is needed.
    bool Pass(Circling& circling, Picoseconds at) {
        bool left = false;
        if (!circling.through) {
            left = Contribute(circling, at);
            circling.through = circling.left.empty();
            if (!circling.through || (left && circling.packet.echo)) return true;
        }
        if (circling.packet.echo) {
            const Packet& asks = circling.packet;
            const Packet ack{.kind = Kind::ACK, .group = asks.group, .turn = asks.turn,
                             .asked = asks.asked};
            Leave(ack, asks.worker, at);
        }
        return false;
    }

    void Take(const Packet& packet, Picoseconds now) {
        barriers_.CheckTurn(packet);
        Circling circling{packet, schedule_.ContributionsOf(packet.id)};
        if (Pass(circling, now)) loop_.Add(circling, now);
    }

    /// Add until the pass ends; return whether something left.
    bool Contribute(Circling& circling, Picoseconds at) {
        ++slots_.tally.passes;
        size_t used = 0;
        std::optional<bool> left;
        for (const uint32_t word : circling.left) {
            ++used;
            left = Add(schedule_.RowOf(word, circling.packet.id), circling.packet, at);
            if (left || word & Schedule::kLastOfPass) break;
        }
        circling.left = circling.left.subspan(used);
        return left.value_or(false);
    }

    /// One pass, without the loop: it touches one slot.
    void Recall(const Packet& packet, Picoseconds now) {
        const Packet answer = slots_.AnswerTo(packet);
        slots_.tally.sent_again += answer.kind == Kind::SUM;
        down_[packet.worker]->Send(answer, now);
    }

    const Schedule& schedule_;
    Barriers barriers_;
    Loop loop_;
};
