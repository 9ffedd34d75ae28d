// A worker whose sums the switch makes: host/innetwork/exchange.py.
#pragma once

#include "schedule.h"

// As in host/innetwork/receiver.py and host/base/pace.py.
constexpr int kAtOnce = 16;
constexpr Picoseconds kRecallShare = 4;
constexpr int kAttemptsWhenAnswered = 3;
// Time-outs without any sum; each is longer than the one before by a quarter of the block.
constexpr int kPatience = 64;

constexpr uint32_t kMostTold = std::numeric_limits<uint16_t>::max();

/// What a worker sends and awaits of a unit in flight. The next one of the pool takes its place.
class Flight {
  public:
    Flight(const Schedule& schedule, uint32_t worker, const PaceOptions& pace)
        : schedule_(schedule), worker_(worker), pace_(pace) {}

    void Begin(uint32_t unit) {
        turn_ = unit + schedule_.pools;
        block_ = unit % schedule_.blocks;
        fragment_ = unit / schedule_.blocks;
        share_ = schedule_.ShareOf(worker_, block_);
        awaited_ = share_.rows;
        schedule_.Expect(worker_, block_, left_);
        sent_ = confirmed_ = 0;
        first_waiting_ = 0;
        acknowledged_.assign((share_.packets + pace_.group - 1) / pace_.group, false);
    }

    /// Features that need not wait for acknowledgements of others.
    uint64_t Sendable() const {
        const uint64_t furthest = uint64_t{first_waiting_ + pace_.groups_apart} * pace_.group;
        return std::min(share_.packets, furthest) - sent_;
    }

    Packet Next(Picoseconds now) {
        Packet packet{.kind = Kind::FEATURE, .turn = turn_, .asked = now};
        packet.id = static_cast<uint32_t>(share_.first_packet + sent_);
        packet.count = schedule_.CountOf(packet.id);
        packet.bytes = schedule_.BytesOf(packet.id, fragment_);
        packet.group = static_cast<uint32_t>(sent_ / pace_.group);
        ++sent_;
        packet.echo = sent_ % pace_.group == 0 || sent_ == share_.packets;
        return packet;
    }

    /// Take the acknowledgement of a group; return its features.
    uint32_t Confirm(uint32_t group) {
        const uint64_t behind = share_.packets - uint64_t{group} * pace_.group;
        const auto features = static_cast<uint32_t>(std::min<uint64_t>(pace_.group, behind));
        confirmed_ += features;
        acknowledged_[group] = true;
        while (first_waiting_ < acknowledged_.size() && acknowledged_[first_waiting_]) {
            ++first_waiting_;
        }
        return features;
    }

    /// Take contributions to a row; return whether it is complete.
    bool Take(uint32_t row, uint16_t count) {
        uint16_t& left = left_[schedule_.RankOf(worker_, block_, row)];
        if (count > left) {
            throw SimulationError(
                "A worker got more contributions to a sum than it has neighbours.");
        }
        left -= count;
        awaited_ -= left == 0;
        return left == 0;
    }

    bool Misses(uint32_t row) const {
        return left_[schedule_.RankOf(worker_, block_, row)] != 0;
    }

    std::vector<uint32_t> MissingRows() const {
        std::vector<uint32_t> rows;
        for (size_t rank = 0; rank < left_.size(); ++rank) {
            if (left_[rank] != 0) rows.push_back(schedule_.RowAt(worker_, block_, rank));
        }
        return rows;
    }

    uint32_t Turn() const { return turn_; }
    uint64_t InFlight() const { return sent_ - confirmed_; }
    bool AllConfirmed() const { return confirmed_ == share_.packets; }
    bool Through() const { return AllConfirmed() && awaited_ == 0; }
    double PacketsPerSum() const { return schedule_.PacketsPerSum(worker_, block_); }

  private:
    const Schedule& schedule_;
    uint32_t worker_;
    const PaceOptions& pace_;
    // Contributions that each row of this worker still misses, by rank among its rows.
    std::vector<uint16_t> left_;
    uint32_t turn_ = 0;
    uint32_t block_ = 0;
    uint32_t fragment_ = 0;
    Schedule::Share share_{};
    uint64_t sent_ = 0;
    uint64_t confirmed_ = 0;
    uint64_t awaited_ = 0;
    std::vector<bool> acknowledged_;
    uint32_t first_waiting_ = 0;
};

/// Asks for missing sums of a unit. After a silence it asks for sixteen; then each answer triggers
/// the next question about those missing at that time, as they may be thousands. A real receiver
/// (host/innetwork/receiver.py) asks for one first; at the speed of hardware, sixteen take the time
/// of a few packets. Nothing is lost inside the simulated switch, so nothing is fetched.
class Recaller {
  public:
    using Recall = std::function<void(uint32_t row, Picoseconds now)>;

    Recaller(const Flight& flight, Recall recall, const RoundTrip& round_trip)
        : flight_(flight), recall_(std::move(recall)), round_trip_(round_trip) {}

    /// A unit begins.
    void Begin(Picoseconds now) {
        Stop();
        marked_ = false;
        began_ = now;
    }

    /// The worker's own features are through, and sums are missing, which may be lost.
    void Wait(Picoseconds now) {
        if (!timer_.On()) {
            attempts_ = in_vain_ = 0;
            quiet_since_ = now;
            timer_.SetTo(Due(now));
        }
    }

    /// A packet came marked: the queue was long, so missing sums are lost there rather than late,
    /// and the shortest time-out, which is for slow hosts, does not apply.
    void Marked() { marked_ = true; }
    /// A sum came.
    void Heard(Picoseconds now) {
        if (!timer_.On()) return;
        attempts_ = in_vain_ = 0;
        quiet_since_ = now;
        AskNext(now);
        timer_.SetTo(Due(now));
    }

    /// The switch has answered that a sum is not complete.
    void NotYet(Picoseconds now) {
        attempts_ = std::min(attempts_, kAttemptsWhenAnswered);
        AskNext(now);
    }

    /// All are here.
    void Stop() {
        timer_.Stop();
        to_ask_.clear();
        asked_ = 0;
    }

  private:
    void Late(Picoseconds now) {
        if (++in_vain_ > kPatience) {
            throw SimulationError("Nothing happens any more, but workers wait: the plan is wrong.");
        }
        ++attempts_;
        quiet_since_ = now;
        to_ask_ = flight_.MissingRows();
        asked_ = 0;
        for (int i = 0; i < kAtOnce; ++i) AskNext(now);
        timer_.SetTo(Due(now));
    }

    void AskNext(Picoseconds now) {
        while (asked_ < to_ask_.size() && !flight_.Misses(to_ask_[asked_])) ++asked_;
        if (asked_ < to_ask_.size()) recall_(to_ask_[asked_++], now);
    }

    /// The time that has passed shows how slow the others are.
    Picoseconds Due(Picoseconds now) const {
        const Picoseconds share = (now - began_) / kRecallShare;
        return quiet_since_ + std::max(share, round_trip_.BackedOff(attempts_, !marked_));
    }

    const Flight& flight_;
    Recall recall_;
    const RoundTrip& round_trip_;
    Timer timer_{[this](Picoseconds now) { Late(now); }};
    Picoseconds began_ = 0;
    Picoseconds quiet_since_ = 0;
    bool marked_ = false;
    int attempts_ = 0;
    int in_vain_ = 0;
    std::vector<uint32_t> to_ask_;
    size_t asked_ = 0;
};

class Worker : public Host {
  public:
    /// opening: whether the exchange begins with a barrier.
    Worker(const Schedule& schedule, uint32_t worker, const PaceOptions& pace, bool opening)
        : Host(worker, pace), schedule_(schedule), passed_(opening ? 0 : schedule.pools) {
        for (uint32_t pool = 0; pool < schedule.pools; ++pool) {
            const Flight& flight = flights_.emplace_back(schedule, worker, pace_);
            const auto recall = [this, &flight](uint32_t row, Picoseconds now) {
                ++recalled;
                Send({.kind = Kind::RECALL, .id = row, .turn = flight.Turn()}, now);
            };
            recallers_.emplace_back(flight, recall, congestion_.trip);
        }
    }

    /// Open the exchange in all pools, or begin with its first units.
    void Start(Picoseconds now) override {
        for (uint32_t pool = passed_; pool < schedule_.pools; ++pool) {
            Send({.kind = Kind::DONE, .turn = pool}, now);
        }
        BeginSome(now);
    }

    void Receive(const Packet& packet, uint32_t, Picoseconds now) override {
        Heed(packet, now);
        if (packet.kind == Kind::ADVANCE) {
            ++passed_;
            BeginSome(now);
        } else if (packet.kind == Kind::ACK) {
            TakeAck(packet, now);
        } else if (packet.kind == Kind::MISSING) {
            recallers_[PoolOf(packet.turn)].NotYet(now);
        } else if (IsData(packet.kind)) {
            TakePart(packet, now);
        }
    }

  protected:
    /// Of the oldest unit that has one.
    void SendNext(Picoseconds now) override {
        uint32_t turn = passed_;
        while (FlightOf(turn).Sendable() == 0) ++turn;
        Send(FlightOf(turn).Next(now), now);
    }

    uint64_t Sendable() const override { return Total(flights_, &Flight::Sendable); }
    uint64_t InFlight() const override { return Total(flights_, &Flight::InFlight); }

  private:
    uint32_t PoolOf(uint32_t turn) const { return turn % schedule_.pools; }
    Flight& FlightOf(uint32_t turn) { return flights_[PoolOf(turn)]; }

    void Send(Packet packet, Picoseconds now) {
        packet.worker = worker_;
        up_->Send(packet, now);
    }

    /// As host/innetwork/receiver.py and host/base/congestion.py.
    void Heed(const Packet& packet, Picoseconds now) {
        if (packet.kind == Kind::NOTICE) {
            congestion_.Marked(packet.count * FlightOf(passed_).PacketsPerSum(), now);
            return;
        }
        if (!packet.ecn || !IsData(packet.kind)) return;
        ++untold_;
        if (pace_.congestion != Rule::NONE) recallers_[PoolOf(packet.turn)].Marked();
        if (now - last_notice_ >= congestion_.trip.Smoothed()) {
            last_notice_ = now;
            const auto told = static_cast<uint16_t>(std::min(untold_, kMostTold));
            Send({.kind = Kind::NOTICE, .count = told}, now);
            untold_ = 0;
        }
    }

    /// Begin the units whose pools have passed the barriers before them, once the exchange is open.
    void BeginSome(Picoseconds now) {
        if (passed_ < schedule_.pools) return;
        if (passed_ == schedule_.Units() + schedule_.pools) return Finish(now);
        for (; begun_ < std::min(passed_, schedule_.Units()); ++begun_) {
            FlightOf(begun_).Begin(begun_);
            recallers_[PoolOf(begun_)].Begin(now);
        }
        SendSome(now);
        CloseThose(now);
    }

    void TakeAck(const Packet& packet, Picoseconds now) {
        congestion_.trip.Measured(now - packet.asked);
        congestion_.Acknowledged(FlightOf(packet.turn).Confirm(packet.group));
        SendSome(now);
        CloseThose(now);
    }

    void TakePart(const Packet& packet, Picoseconds now) {
        if (packet.echo) TakeAck(packet, now);
        Flight& flight = FlightOf(packet.turn);
        // An ADVANCE overtakes what was recalled for nothing.
        const bool late = packet.turn != flight.Turn();
        bool complete = false;
        for (uint32_t i = 0; i <= packet.others; ++i) {
            const uint32_t row = i < packet.others ? packet.other[i] : packet.id;
            if (pace_.losses && (late || !flight.Misses(row))) {
                ++repeated;
            } else if (flight.Take(row, schedule_.rows > 1 ? 1 : packet.count)) {
                complete = true;
            }
        }
        if (complete) {
            recallers_[PoolOf(packet.turn)].Heard(now);
            CloseThose(now);
        }
    }

    /// Report units that are through, in order, and let others wait for sums that may be lost.
    void CloseThose(Picoseconds now) {
        for (uint32_t unit = reported_; unit < begun_; ++unit) {
            const Flight& flight = FlightOf(unit);
            if (flight.Through()) {
                recallers_[PoolOf(unit)].Stop();
            } else if (pace_.losses && flight.AllConfirmed()) {
                recallers_[PoolOf(unit)].Wait(now);
            }
            if (unit == reported_ && flight.Through()) {
                ++reported_;
                Send({.kind = Kind::DONE, .turn = flight.Turn()}, now);
            }
        }
    }

    const Schedule& schedule_;
    // By pool.
    std::deque<Flight> flights_;
    std::deque<Recaller> recallers_;
    // Turns whose barriers have passed; units that have begun, and that were reported.
    uint32_t passed_;
    uint32_t begun_ = 0;
    uint32_t reported_ = 0;
    Picoseconds last_notice_ = kLongAgo;
    // Data packets that came marked since the last notice.
    uint32_t untold_ = 0;
};
