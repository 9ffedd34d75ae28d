// A worker without the switch's help: host/direct/outbox.py and host/direct/arrivals.py.
#pragma once

#include "schedule.h"

#include <bit>

/// Which frames of all senders have arrived; each frame has one receiver, so all hosts share it.
class Arrived {
  public:
    /// indptr: where the frames of each sender begin.
    explicit Arrived(std::span<const uint64_t> indptr) : indptr_(indptr), arrived_(indptr.back()) {}

    /// Note that a frame has arrived; return whether it is the first time.
    bool Take(uint32_t sender, uint32_t index) {
        const uint64_t at = indptr_[sender] + index;
        const bool news = !arrived_[at];
        arrived_[at] = true;
        return news;
    }

    /// A bit for each missing frame of the run of that length that ends at the index.
    uint8_t Missing(uint32_t sender, uint32_t index, uint16_t length) const {
        uint8_t missing = 0;
        const uint64_t first = indptr_[sender] + index + 1 - length;
        for (uint16_t i = 0; i < length; ++i) {
            missing |= static_cast<uint8_t>(!arrived_[first + i] << i);
        }
        return missing;
    }

  private:
    std::span<const uint64_t> indptr_;
    std::vector<bool> arrived_;
};

/// Sends a copy to each worker that needs it, as BNS-GCN with p = 1.
class Peer : public Host {
  public:
    /// slot: the time of a frame. arrived: by all hosts.
    Peer(uint32_t worker, const PaceOptions& pace, const Arrays& arrays, Picoseconds slot,
         Arrived& arrived)
        : Host(worker, pace), arrays_(arrays), slot_(slot), marked_(256), arrived_(arrived) {}

    void Start(Picoseconds now) override {
        began_ = now;
        SendDue(now);
        FinishIfThrough(now);
    }

    void Receive(const Packet& packet, uint32_t, Picoseconds now) override {
        if (packet.kind == Kind::ACK) {
            TakeAck(packet, now);
        } else if (packet.kind == Kind::RECALL) {
            Acknowledge(packet, now);
        } else {
            TakeFrame(packet, now);
        }
        FinishIfThrough(now);
    }

  protected:
    void SendNext(Picoseconds now) override {
        const Packet packet = FrameAt(sent_, now);
        ++sent_;
        up_->Send(packet, now);
        if (pace_.losses && packet.echo) Await(packet.group, packet.count, now);
    }

    uint64_t Sendable() const override { return ripe_ - sent_; }
    uint64_t InFlight() const override { return sent_ - confirmed_; }

  private:
    /// Frames that are acknowledged together, and have not all been; the last one asks for it, and
    /// its index names the run.
    struct Run {
        uint16_t length;
        uint8_t missing;
        Picoseconds asked_at;
        int attempts;
    };

    /// Send what is due, and go on when the next frame is.
    void SendDue(Picoseconds now) {
        const auto at = [this] { return began_ + static_cast<Picoseconds>(due_[ripe_]) * slot_; };
        while (ripe_ < due_.size() && at() <= now) ++ripe_;
        if (ripe_ < due_.size()) pause_.SetTo(at());
        SendSome(now);
    }

    void TakeFrame(const Packet& packet, Picoseconds now) {
        marked_[packet.worker] = marked_[packet.worker] || packet.ecn;
        if (arrived_.Take(packet.worker, packet.group)) {
            --awaited_;
        } else {
            ++repeated;
        }
        if (packet.echo) Acknowledge(packet, now);
    }

    /// An ACK says whether frames came marked, and is not marked itself.
    void Acknowledge(const Packet& packet, Picoseconds now) {
        const uint8_t missing = arrived_.Missing(packet.worker, packet.group, packet.count);
        up_->Send({.kind = Kind::ACK, .ecn = marked_[packet.worker], .missing = missing,
                   .worker = worker_, .count = packet.count, .id = packet.worker,
                   .group = packet.group, .asked = packet.asked, .between_hosts = true}, now);
        marked_[packet.worker] = false;
    }

    void TakeAck(const Packet& packet, Picoseconds now) {
        congestion_.trip.Measured(now - packet.asked);
        const uint32_t confirmed = pace_.losses ? Confirmed(packet, now) : packet.count;
        confirmed_ += confirmed;
        congestion_.Marked(packet.ecn ? confirmed : 0, now);
        congestion_.Acknowledged(confirmed);
        SendSome(now);
    }

    /// Await the acknowledgement of a run.
    void Await(uint32_t index, uint16_t length, Picoseconds now) {
        open_[index] = {length, static_cast<uint8_t>((1U << length) - 1), now, 0};
        if (!timer_.On()) timer_.SetTo(now + congestion_.trip.BackedOff(0));
    }

    /// Return how many frames an acknowledgement confirms. Lost ones are sent again, outside the
    /// window: they are in flight already.
    uint32_t Confirmed(const Packet& ack, Picoseconds now) {
        const auto found = open_.find(ack.group);
        if (found == open_.end()) return 0;
        Run& run = found->second;
        run.attempts = 0;
        const int confirmed = std::popcount(static_cast<uint8_t>(run.missing & ~ack.missing));
        run.missing &= ack.missing;
        if (run.missing == 0) {
            open_.erase(found);
            if (open_.empty()) timer_.Stop();
        } else if (ack.asked >= run.asked_at) {
            // An answer to an earlier question says nothing about frames sent again since.
            SendAgain(ack.group, run, now);
        }
        return confirmed;
    }

    /// Send what a run misses, and ask whether it arrives.
    void SendAgain(uint32_t index, Run& run, Picoseconds now) {
        for (uint16_t i = 0; i < run.length; ++i) {
            if (!(run.missing >> i & 1)) continue;
            Packet packet = FrameAt(index + 1 - run.length + i, now);
            packet.echo = false;
            ++sent_again;
            up_->Send(packet, now);
        }
        congestion_.Lost(now);
        Question(index, run, now);
    }

    void Late(Picoseconds now) {
        const RoundTrip& trip = congestion_.trip;
        Picoseconds next = now + trip.BackedOff(0);
        for (auto& [index, run] : open_) {
            if (now >= run.asked_at + trip.BackedOff(run.attempts)) {
                ++run.attempts;
                Question(index, run, now);
            }
            next = std::min(next, run.asked_at + trip.BackedOff(run.attempts));
        }
        timer_.SetTo(next);
    }

    Packet FrameAt(uint64_t index, Picoseconds now) const {
        return {.kind = Kind::FEATURE, .echo = confirms_[index] != 0, .worker = worker_,
                .count = confirms_[index], .id = to_[index],
                .group = static_cast<uint32_t>(index), .asked = now, .bytes = bytes_[index],
                .between_hosts = true};
    }

    void Question(uint32_t index, Run& run, Picoseconds now) {
        run.asked_at = now;
        ++recalled;
        up_->Send({.kind = Kind::RECALL, .worker = worker_, .count = run.length, .id = to_[index],
                   .group = index, .asked = now, .between_hosts = true}, now);
    }

    void FinishIfThrough(Picoseconds now) {
        if (!Finished() && awaited_ == 0 && confirmed_ == to_.size()) Finish(now);
    }

    /// What an array has about the frames of this worker, in sending order.
    template <typename T>
    std::span<const T> Mine(const char* name) const {
        const uint64_t* const begin = &arrays_.Get<uint64_t>("frame_indptr")[worker_];
        return arrays_.Get<T>(name).subspan(begin[0], begin[1] - begin[0]);
    }

    const Arrays& arrays_;
    // The receiver of each frame.
    std::span<const uint8_t> to_ = Mine<uint8_t>("frame_to");
    // How many frames its ACK confirms; 0 where none is asked for.
    std::span<const uint8_t> confirms_ = Mine<uint8_t>("frame_confirms");
    std::span<const uint16_t> bytes_ = Mine<uint16_t>("frame_bytes");
    // Before how many frames it does not leave, each of which takes the time of `slot_`.
    std::span<const uint64_t> due_ = Mine<uint64_t>("frame_due");
    Picoseconds slot_;
    Picoseconds began_ = 0;
    // Frames that are due.
    uint64_t ripe_ = 0;
    Timer pause_{[this](Picoseconds now) { SendDue(now); }};
    uint64_t awaited_ = arrays_.Get<uint64_t>("awaited")[worker_];
    uint64_t sent_ = 0;
    uint64_t confirmed_ = 0;
    // From whom marked frames came since the last ACK to it.
    std::vector<bool> marked_;
    Arrived& arrived_;
    // Only where packets can be lost.
    std::map<uint32_t, Run> open_;
    Timer timer_{[this](Picoseconds now) { Late(now); }};
};
