// The network between the workers: a star, or leaves and spines with a link from each to each.
#pragma once

#include "switch.h"

#include <memory>

/// The spine that has the barrier and passes notices on.
constexpr uint32_t kBarrierSpine = 0;

/// Workers with numbers in a row are attached to the same leaf; each leaf has an equal share.
struct LeafTier {
    uint32_t workers;
    uint32_t leaves;

    uint32_t LeafOf(uint32_t worker) const {
        return static_cast<uint32_t>(uint64_t{worker} * leaves / workers);
    }

    /// The first worker of a leaf; the number of workers for the leaf after the last.
    uint32_t FirstOf(uint32_t leaf) const {
        return static_cast<uint32_t>((uint64_t{leaf} * workers + leaves - 1) / leaves);
    }
};

/// The links of a leaf to all spines.
class Uplinks {
  public:
    Uplinks(const LeafTier& tier, uint32_t leaf) : tier_(tier), leaf_(leaf) {}
    void Attach(Link& up) { up_.push_back(&up); }
    uint32_t First() const { return first_; }
    /// Whether a worker is attached to this leaf.
    bool Here(uint32_t worker) const { return first_ <= worker && worker < end_; }
    /// Whether this is the port of a link from a spine.
    bool FromSpine(uint32_t port) const { return port >= tier_.workers; }

    void SendTo(uint32_t spine, const Packet& packet, Picoseconds now) {
        up_[spine]->Send(packet, now);
    }

    /// Send through the spine that a mixed key leads to: equal keys always take the same one.
    void SendByKey(uint64_t key, const Packet& packet, Picoseconds now) {
        up_[Mixed(key) % up_.size()]->Send(packet, now);
    }

    std::string Name() const { return "leaf " + std::to_string(leaf_); }

  private:
    /// The end of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
    static uint64_t Mixed(uint64_t key) {
        key += 0x9e3779b97f4a7c15;
        key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9;
        key = (key ^ (key >> 27)) * 0x94d049bb133111eb;
        return key ^ (key >> 31);
    }

    LeafTier tier_;
    uint32_t leaf_;
    uint32_t first_ = tier_.FirstOf(leaf_);
    uint32_t end_ = tier_.FirstOf(leaf_ + 1);
    std::vector<Link*> up_;
};

/// Which switch completes the sum of a row, as in switchgnn/planner/plan/leaf_spine.py.
struct SumRoutes {
    /// Of each row of the plan, whether workers of other leaves than its own contribute.
    std::vector<bool> crosses;
    /// Of each row of the plan, the destination.
    std::span<const uint32_t> vertex;
    uint32_t spines;
    /// Fragments of a row of the plan, each of which is a row of its own.
    uint32_t together;

    /// Whether a spine completes the sum, or else the leaf of its worker.
    bool Crosses(uint32_t row) const { return crosses[row / together]; }
    /// Spines take turns by the number of the destination.
    uint32_t SpineOf(uint32_t row) const { return vertex[row / together] % spines; }
};

/// A leaf, or one switch alone, that forwards frames between hosts: down to a host of its own, or
/// up.
class PlainLeaf : public Switch {
  public:
    explicit PlainLeaf(Uplinks& uplinks) : uplinks_(uplinks) {}

    void Receive(const Packet& packet, uint32_t, Picoseconds now) override {
        if (uplinks_.Here(packet.id)) {
            down_[packet.id - uplinks_.First()]->Send(packet, now);
            return;
        }
        // As ECMP does: the frames of a sender to a receiver stay in their order.
        uplinks_.SendByKey(uint64_t{packet.worker} << 32 | packet.id, packet, now);
    }

    std::string Name(uint32_t) const override { return uplinks_.Name(); }

  private:
    Uplinks& uplinks_;
};

/// A leaf that adds the contributions of its own workers, and reports to the first spine when all
/// of these are done.
///
/// In the P4 program spines complete the sums that cross them: a sum with all contributions and its
/// worker at this leaf is complete here, and the part of any other goes to the spine that completes
/// it. In a variant, which the P4 program does not implement, the worker's leaf completes the sum:
/// a part leaves when it has all contributions from here, and that leaf adds it.
class Leaf : public AddingSwitch {
  public:
    /// routes: to the spines that complete sums; null where leaves do.
    Leaf(const Schedule& schedule, Slots slots, const Options& options, Uplinks& uplinks,
         const SumRoutes* routes)
        : AddingSwitch(schedule, std::move(slots), options), uplinks_(uplinks), routes_(routes) {}

    void Receive(const Packet& packet, uint32_t port, Picoseconds now) override {
        if (!uplinks_.FromSpine(port)) {
            AddingSwitch::Receive(packet, port, now);
        } else if (IsData(packet.kind)) {
            TakeFromSpine(packet, now);
        } else if (packet.kind == Kind::ADVANCE) {
            Advance(packet.turn, now);
        } else if (packet.kind == Kind::NOTICE) {
            TellAll(packet, now);
        }
    }

    /// Without sums that have gone up, which have not reached their workers.
    Tally Count() const override {
        Tally tally = AddingSwitch::Count();
        tally.sums -= sums_up_;
        tally.overflowed -= features_up_;
        return tally;
    }

    std::string Name(uint32_t) const override { return uplinks_.Name(); }

  private:
    /// A sum, or a feature that found no slot, has come from a spine.
    void TakeFromSpine(Packet packet, Picoseconds now) {
        if (routes_) {
            // It passes all slots by: see Passage in p4src/access.p4.
            for (const uint32_t worker : slots_.ReceiversOf(packet.id)) {
                if (uplinks_.Here(worker)) SendDown(packet, worker, now);
            }
            return;
        }
        // One contribution, one pass. If the sum is complete, it leaves in the same pass.
        ++slots_.tally.passes;
        Add(packet.id, packet, now);
    }

    void Send(const Packet& packet, uint32_t worker, Picoseconds now) override {
        const bool part = IsData(packet.kind);
        if (routes_ ? !part || !routes_->Crosses(packet.id) : uplinks_.Here(worker)) {
            SendDown(packet, worker, now);
            return;
        }
        ++(packet.kind == Kind::SUM ? sums_up_ : features_up_);
        if (routes_) {
            uplinks_.SendTo(routes_->SpineOf(packet.id), packet, now);
        } else {
            Packet sent = packet;
            sent.worker = static_cast<uint16_t>(worker);
            uplinks_.SendByKey(packet.id, sent, now);
        }
    }

    void SendDown(const Packet& packet, uint32_t worker, Picoseconds now) {
        down_[worker - uplinks_.First()]->Send(packet, now);
    }

    void Done(uint32_t turn, Picoseconds now) override {
        uplinks_.SendTo(kBarrierSpine, {.kind = Kind::DONE, .turn = turn}, now);
    }

    /// It comes back from the first spine, for all workers: see Notice in p4src/congestion.p4. In
    /// the variant, this leaf's workers get it at once, and only the others from the spine.
    void Notice(const Packet& packet, Picoseconds now) override {
        if (!routes_) TellAll(packet, now);
        uplinks_.SendTo(kBarrierSpine, packet, now);
    }

    uint32_t WorkerAt(uint32_t index) const override { return uplinks_.First() + index; }

    Uplinks& uplinks_;
    const SumRoutes* routes_;
    uint64_t sums_up_ = 0;
    uint64_t features_up_ = 0;
};

/// A switch whose links all lead to leaves. The first spine has the barrier.
class Spine : public Switch {
  public:
    /// slots: to complete sums in, as the P4 program does; none where it only forwards.
    Spine(const LeafTier& tier, uint32_t number, const Options& options, std::optional<Slots> slots)
        : tier_(tier), number_(number), barriers_(options), slots_(std::move(slots)) {}

    void Receive(const Packet& packet, uint32_t, Picoseconds now) override {
        if (packet.kind == Kind::DONE) {
            Collect(packet, now);
        } else if (packet.kind == Kind::NOTICE) {
            Notice(packet, now);
        } else {
            Take(packet, now);
        }
    }

    Tally Count() const override { return slots_ ? slots_->tally : Tally{}; }
    std::string Name(uint32_t) const override { return "spine " + std::to_string(number_); }

  private:
    /// A part of a sum is one contribution in one pass; if it completes the sum, that leaves in the
    /// same pass. Frames between hosts, and parts where leaves complete sums, are forwarded.
    void Take(const Packet& packet, Picoseconds now) {
        if (!slots_) {
            SendToLeafOf(packet.between_hosts ? packet.id : packet.worker, packet, now);
            return;
        }
        ++slots_->tally.passes;
        std::optional<Packet> leaving = slots_->Add(packet.id, packet);
        if (!leaving || !slots_->Pack(*leaving)) return;
        uint32_t last = tier_.leaves;
        for (const uint32_t worker : slots_->ReceiversOf(packet.id)) {
            if (tier_.LeafOf(worker) != last) SendToLeafOf(worker, *leaving, now);
            last = tier_.LeafOf(worker);
        }
    }

    /// A worker has got a marked packet: tell all leaves, but not one that told its workers itself.
    void Notice(const Packet& notice, Picoseconds now) {
        for (uint32_t leaf = 0; leaf < down_.size(); ++leaf) {
            if (slots_ || leaf != tier_.LeafOf(notice.worker)) down_[leaf]->Send(notice, now);
        }
    }

    void Collect(const Packet& packet, Picoseconds now) {
        if (!barriers_.Collect(packet, down_.size())) return;
        if (slots_) slots_->CheckComplete(packet.turn);
        barriers_.Pass(packet.turn);
        for (Link* down : down_) down->Send({.kind = Kind::ADVANCE, .turn = packet.turn}, now);
    }

    void SendToLeafOf(uint32_t worker, const Packet& packet, Picoseconds now) {
        down_[tier_.LeafOf(worker)]->Send(packet, now);
    }

    LeafTier tier_;
    uint32_t number_;
    Barriers barriers_;
    std::optional<Slots> slots_;
};

using Links = std::deque<Link>;

using Counts = std::vector<uint16_t>;

/// The contributions of the workers of a leaf to each row.
Counts ContributionsFrom(uint32_t leaf, const LeafTier& tier, const Schedule& schedule,
                         size_t rows) {
    Counts here(rows, 0);
    const uint64_t end = schedule.FirstPacketOf(tier.FirstOf(leaf + 1));
    uint64_t packet = schedule.FirstPacketOf(tier.FirstOf(leaf));
    for (; packet < end; packet += schedule.together) {
        for (const uint32_t word : schedule.ContributionsOf(packet)) {
            here[word & ~Schedule::kLastOfPass] += schedule.CountOf(packet);
        }
    }
    return here;
}

void Include(Tally& all, const Tally& one) {
    for (const auto number : {&Tally::sums, &Tally::overflowed, &Tally::sent_again, &Tally::passes,
                              &Tally::contributions, &Tally::loop_passes}) {
        all.*number += one.*number;
    }
    for (const auto number :
         {&Tally::barriers, &Tally::max_loop_queue, &Tally::slots, &Tally::max_slots}) {
        all.*number = std::max(all.*number, one.*number);
    }
}

/// One switch with a link to each worker; or leaves, spines, and a link from each to each. Ports
/// are numbered: those to workers, those of leaf l to spine s (workers + l * spines + s), and as
/// many back.
class Fabric {
  public:
    /// schedule: null where the switches only hand copies on.
    Fabric(const Options& options, const Arrays& arrays, const Schedule* schedule, Trace& trace)
        : meter(options.workers + size_t{2} * options.leaves * options.spines),
          tier_{options.workers, std::max(1U, options.leaves)} {
        for (uint32_t leaf = 0; leaf < tier_.leaves; ++leaf) uplinks_.emplace_back(tier_, leaf);
        if (!schedule) {
            for (Uplinks& each : uplinks_) leaves_.push_back(std::make_unique<PlainLeaf>(each));
        } else if (options.leaves == 0) {
            Slots slots(options, arrays, arrays.Get<uint16_t>("row_expected"));
            leaves_.push_back(std::make_unique<AddingSwitch>(*schedule, std::move(slots), options));
        } else {
            AddLeaves(options, arrays, *schedule);
        }
        AddSpines(options, arrays, schedule && options.spines_complete);
        Connect(options.down, trace);
    }

    /// The switch that a worker has its link to.
    Switch& EdgeOf(uint32_t worker) { return *leaves_[tier_.LeafOf(worker)]; }

    Tally Count() const {
        Tally all;
        for (const auto& leaf : leaves_) Include(all, leaf->Count());
        for (const auto& spine : spines_) Include(all, spine.Count());
        return all;
    }

    /// What waits in the queues of all switches.
    QueueMeter meter;
    /// Links from leaves to spines and back, leaf by leaf; none where there is one switch.
    Links up;
    Links down;

  private:
    /// Add leaves of the P4 program, or of the variant in which they complete sums.
    void AddLeaves(const Options& options, const Arrays& arrays, const Schedule& schedule) {
        const auto expected = arrays.Get<uint16_t>("row_expected");
        const auto worker = arrays.Get<uint8_t>("row_worker");
        std::vector<bool> crosses(expected.size());
        std::vector<Counts> from;
        for (uint32_t leaf = 0; leaf < options.leaves; ++leaf) {
            from.push_back(ContributionsFrom(leaf, tier_, schedule, expected.size()));
        }
        for (size_t row = 0; row < crosses.size(); ++row) {
            uint16_t& own = from[tier_.LeafOf(worker[row])][row];
            crosses[row] = own != expected[row];
            // In the variant it adds what comes from elsewhere, too.
            own = options.spines_complete ? own : expected[row];
        }
        routes_ = {std::move(crosses), arrays.Get<uint32_t>("row_vertex"), options.spines,
                   options.together};
        const SumRoutes* routes = options.spines_complete ? &routes_ : nullptr;
        for (uint32_t leaf = 0; leaf < options.leaves; ++leaf) {
            Slots slots(options, arrays, from[leaf],
                        [this](uint32_t row) { return !routes_.crosses[row]; });
            leaves_.push_back(std::make_unique<Leaf>(schedule, std::move(slots), options,
                                                     uplinks_[leaf], routes));
        }
    }

    /// adds: whether they complete sums.
    void AddSpines(const Options& options, const Arrays& arrays, bool adds) {
        for (uint32_t spine = 0; spine < options.spines; ++spine) {
            std::optional<Slots> slots;
            const auto completes = [this, spine](uint32_t row) {
                return routes_.crosses[row] && routes_.vertex[row] % routes_.spines == spine;
            };
            if (adds) slots.emplace(options, arrays, arrays.Get<uint16_t>("row_expected"), completes);
            spines_.emplace_back(tier_, spine, options, std::move(slots));
        }
    }

    void Connect(const LinkOptions& options, Trace& trace) {
        const size_t links = leaves_.size() * spines_.size();
        for (size_t leaf = 0; leaf < leaves_.size(); ++leaf) {
            for (size_t spine = 0; spine < spines_.size(); ++spine) {
                const auto port = static_cast<uint32_t>(tier_.workers + up.size());
                const auto back = static_cast<uint32_t>(port + links);
                Receiver &top = spines_[spine], &bottom = *leaves_[leaf];
                uplinks_[leaf].Attach(up.emplace_back(options, top, port, &meter, trace));
                spines_[spine].Attach(down.emplace_back(options, bottom, back, &meter, trace));
            }
        }
    }

    LeafTier tier_;
    SumRoutes routes_;
    std::deque<Uplinks> uplinks_;
    std::vector<std::unique_ptr<Switch>> leaves_;
    std::deque<Spine> spines_;
};
