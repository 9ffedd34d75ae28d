// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// A worker that gets some sums from the switch and makes others from other hosts' rows:
// host/mixed.py.
#pragma once

#include "hosts/peer.h"
#include "hosts/worker.h"

#include <algorithm>
#include <memory>
#include <utility>

/// Both parts share a link, begin at once, and have a window each.
class MixedHost : public Participant {
  public:
    MixedHost(std::unique_ptr<Worker> worker, std::unique_ptr<Peer> peer)
        : worker_(std::move(worker)), peer_(std::move(peer)) {}

    void Attach(Link& up) override {
        worker_->Attach(up);
        peer_->Attach(up);
    }

    void Start(Picoseconds now) override {
        worker_->Start(now);
        peer_->Start(now);
    }

    void Receive(const Packet& packet, uint32_t port, Picoseconds now) override {
        if (packet.between_hosts) {
            peer_->Receive(packet, port, now);
        } else {
            worker_->Receive(packet, port, now);
        }
    }

    bool Finished() const override { return worker_->Finished() && peer_->Finished(); }

    Picoseconds FinishedAt() const override {
        return std::max(worker_->FinishedAt(), peer_->FinishedAt());
    }

    uint64_t Cuts() const override { return worker_->Cuts() + peer_->Cuts(); }
    uint64_t Recalled() const override { return worker_->Recalled() + peer_->Recalled(); }
    uint64_t SentAgain() const override { return worker_->SentAgain() + peer_->SentAgain(); }
    uint64_t Repeated() const override { return worker_->Repeated() + peer_->Repeated(); }

  private:
    std::unique_ptr<Worker> worker_;
    std::unique_ptr<Peer> peer_;
};
