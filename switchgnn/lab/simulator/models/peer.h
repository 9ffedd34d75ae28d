// A worker without the switch's help: host/direct/outbox.py and host/direct/arrivals.py.
#pragma once

#include "events.h"
#include "host.h"
#include "link.h"

#include <bit>
#include <map>
#include <optional>
#include <span>
#include <vector>

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

/// The runs of frames of one sender that have not been acknowledged whole. A run ends with the
/// frame that asks; its index names the run.
class Resender {
  public:
    /// Sends a question about a run of frames of that length.
    using Ask = std::function<void(uint32_t index, uint16_t length, Picoseconds now)>;

    /// The content of an acknowledgement.
    struct Answer {
        uint32_t confirmed = 0;
        /// The indices of frames that are lost.
        std::vector<uint32_t> lost;
    };

    Resender(const RoundTrip& round_trip, Ask ask)
        : round_trip_(round_trip),
          ask_(std::move(ask)),
          timer_(ns3::Create<Timer>([this](Picoseconds now) { Late(now); })) {}

    /// A frame that asks has been sent.
    void Sent(uint32_t index, uint16_t length, Picoseconds now) {
        open_[index] = {length, static_cast<uint8_t>((1U << length) - 1), now, 0};
        if (!timer_->On()) timer_->SetTo(now + round_trip_.BackedOff(0));
    }

    Answer Take(const Packet& ack) {
        Answer answer;
        const auto found = open_.find(ack.group);
        if (found == open_.end()) return answer;
        Run& run = found->second;
        run.attempts = 0;
        answer.confirmed = std::popcount(static_cast<uint8_t>(run.missing & ~ack.missing));
        run.missing &= ack.missing;
        // An answer to an earlier question says nothing about frames sent again since.
        for (uint16_t i = 0; i < run.length && ack.asked >= run.asked_at; ++i) {
            if (run.missing >> i & 1) answer.lost.push_back(ack.group + 1 - run.length + i);
        }
        if (run.missing == 0) open_.erase(found);
        if (open_.empty()) timer_->Stop();
        return answer;
    }

    /// Lost frames have been sent again: ask whether they arrive.
    void AskAbout(uint32_t index, Picoseconds now) {
        Run& run = open_.at(index);
        run.asked_at = now;
        ask_(index, run.length, now);
    }

  private:
    struct Run {
        uint16_t length;
        uint8_t missing;
        Picoseconds asked_at;
        int attempts;
    };

    void Late(Picoseconds now) {
        Picoseconds next = now + round_trip_.BackedOff(0);
        for (auto& [index, run] : open_) {
            if (now >= run.asked_at + round_trip_.BackedOff(run.attempts)) {
                ++run.attempts;
                AskAbout(index, now);
            }
            next = std::min(next, run.asked_at + round_trip_.BackedOff(run.attempts));
        }
        timer_->SetTo(next);
    }

    const RoundTrip& round_trip_;
    Ask ask_;
    ns3::Ptr<Timer> timer_;
    std::map<uint32_t, Run> open_;
};

/// Sends a copy to each worker that needs it, as BNS-GCN with p = 1.
class Peer : public Host {
  public:
    /// to: the receiver of each frame, in sending order.
    /// confirms: how many frames its ACK confirms; 0 where none is asked for.
    /// bytes: of the frame.
    /// arrived: by all hosts.
    Peer(uint32_t worker, const PaceOptions& pace, std::span<const uint8_t> to,
         std::span<const uint8_t> confirms, std::span<const uint16_t> bytes, uint64_t awaited,
         Arrived& arrived)
        : Host(worker, pace),
          to_(to),
          confirms_(confirms),
          bytes_(bytes),
          awaited_(awaited),
          marked_(256),
          arrived_(arrived) {
        if (pace.losses) {
            const auto ask = [this](uint32_t index, uint16_t length, Picoseconds now) {
                Question(index, length, now);
            };
            resender_.emplace(congestion_.Trip(), ask);
        }
    }

    void Start(Picoseconds now) override {
        SendSome(now);
        FinishIfThrough(now);
    }

    void Receive(const Packet& packet, uint32_t, Picoseconds now) override {
        switch (packet.kind) {
            case Kind::ACK:
                TakeAck(packet, now);
                break;
            case Kind::RECALL:
                Acknowledge(packet, now);
                break;
            default:
                TakeFrame(packet, now);
                break;
        }
        FinishIfThrough(now);
    }

  protected:
    void SendNext(Picoseconds now) override {
        const Packet packet = FrameAt(sent_, now);
        ++sent_;
        up_->Send(packet, now);
        if (resender_ && packet.echo) resender_->Sent(packet.group, packet.count, now);
    }

    uint64_t Sendable() const override { return to_.size() - sent_; }
    uint64_t InFlight() const override { return sent_ - confirmed_; }

  private:
    void TakeFrame(const Packet& packet, Picoseconds now) {
        marked_[packet.worker] = marked_[packet.worker] || packet.ecn;
        if (arrived_.Take(packet.worker, packet.group)) {
            --awaited_;
        } else {
            ++tally_.repeated;
        }
        if (packet.echo) Acknowledge(packet, now);
    }

    /// An ACK says whether frames came marked, and is not marked itself.
    void Acknowledge(const Packet& packet, Picoseconds now) {
        Packet ack{.kind = Kind::ACK, .ecn = marked_[packet.worker], .asked = packet.asked};
        marked_[packet.worker] = false;
        ack.worker = static_cast<uint16_t>(worker_);
        ack.id = packet.worker;
        ack.count = packet.count;
        ack.group = packet.group;
        ack.missing = arrived_.Missing(packet.worker, packet.group, packet.count);
        ack.between_hosts = true;
        up_->Send(ack, now);
    }

    void TakeAck(const Packet& packet, Picoseconds now) {
        congestion_.Measured(now - packet.asked);
        const uint32_t confirmed = resender_ ? Confirmed(packet, now) : packet.count;
        confirmed_ += confirmed;
        congestion_.Marked(packet.ecn ? confirmed : 0);
        congestion_.Acknowledged(confirmed);
        SendSome(now);
    }

    /// Lost frames are sent again, outside the window: they are in flight already.
    uint32_t Confirmed(const Packet& ack, Picoseconds now) {
        const Resender::Answer answer = resender_->Take(ack);
        for (const uint32_t index : answer.lost) {
            Packet packet = FrameAt(index, now);
            packet.echo = false;
            ++tally_.sent_again;
            up_->Send(packet, now);
        }
        if (!answer.lost.empty()) {
            congestion_.Lost(now);
            resender_->AskAbout(ack.group, now);
        }
        return answer.confirmed;
    }

    Packet FrameAt(uint64_t index, Picoseconds now) const {
        Packet packet{
            .kind = Kind::FEATURE, .worker = static_cast<uint16_t>(worker_), .asked = now};
        packet.id = to_[index];
        packet.count = confirms_[index];
        packet.bytes = bytes_[index];
        packet.echo = packet.count != 0;
        packet.group = static_cast<uint32_t>(index);
        packet.between_hosts = true;
        return packet;
    }

    void Question(uint32_t index, uint16_t length, Picoseconds now) {
        Packet question{
            .kind = Kind::RECALL, .worker = static_cast<uint16_t>(worker_), .asked = now};
        question.id = to_[index];
        question.count = length;
        question.group = index;
        question.between_hosts = true;
        ++tally_.recalled;
        up_->Send(question, now);
    }

    void FinishIfThrough(Picoseconds now) {
        if (!Finished() && awaited_ == 0 && confirmed_ == to_.size()) Finish(now);
    }

    std::span<const uint8_t> to_;
    std::span<const uint8_t> confirms_;
    std::span<const uint16_t> bytes_;
    uint64_t awaited_;
    uint64_t sent_ = 0;
    uint64_t confirmed_ = 0;
    // From whom marked frames came since the last ACK to it.
    std::vector<bool> marked_;
    Arrived& arrived_;
    // Only where packets can be lost.
    std::optional<Resender> resender_;
};
