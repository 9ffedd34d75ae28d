// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The arrays of a simulation, and the sends and contributions of each worker and block.
#pragma once

#include "base/events.h"

#include <map>
#include <span>
#include <string>
#include <vector>

/// The arrays that Python has written for a simulation; mapped, not copied.
class Arrays {
  public:
    explicit Arrays(const std::string& path);
    ~Arrays();
    Arrays(const Arrays&) = delete;
    Arrays& operator=(const Arrays&) = delete;

    template <typename T>
    std::span<const T> Get(const std::string& name) const {
        const Block& block = Find(name, sizeof(T));
        return {reinterpret_cast<const T*>(block.data), block.length};
    }

  private:
    struct Block {
        const char* data;
        size_t length;
        size_t item_bytes;
    };

    const Block& Find(const std::string& name, size_t item_bytes) const;

    void* mapped_ = nullptr;
    size_t bytes_ = 0;
    std::map<std::string, Block> blocks_;
};

/// The sends of each worker in each block, and the rows that they contribute to. Packets are
/// numbered worker by worker, block by block, in sending order; rows (destinations of blocks) block
/// by block. Where fragments are exchanged together, a packet or row of the plan is as many packets
/// or rows one after another, a fragment each.
class Schedule {
  public:
    /// The part of a worker in a block.
    struct Share {
        uint64_t first_packet;
        uint64_t packets;
        uint64_t rows;
    };

    /// The contributions of a packet: rows of the plan, with the highest bit where a pass ends.
    using Contributions = std::span<const uint32_t>;
    static constexpr uint32_t kLastOfPass = 1U << 31;

    /// fragment_bytes: of the frames of each fragment of a feature.
    Schedule(const Arrays& arrays, uint32_t blocks, uint32_t fragments, uint32_t together,
             std::vector<uint32_t> fragment_bytes);

    Share ShareOf(uint32_t worker, uint32_t block) const;

    /// How many packets a worker sends in a block for each sum that leaves in a block on average.
    double PacketsPerSum(uint32_t worker, uint32_t block) const {
        const double sums = static_cast<double>(row_expected_.size() * together) / blocks;
        return static_cast<double>(ShareOf(worker, block).packets) / sums;
    }

    /// The rows of the worker's fullest block.
    uint64_t RowsOf(uint32_t worker) const;
    /// Set the contributions that each row of the worker misses at the beginning of a block.
    void Expect(uint32_t worker, uint32_t block, std::vector<uint16_t>& left) const;

    /// The row at a place among those of a worker and block.
    uint32_t RowAt(uint32_t worker, uint32_t block, uint64_t place) const {
        const uint64_t first = receive_indptr_[size_t{worker} * blocks + block];
        return receive_row_[first + place / together] * together + place % together;
    }

    /// The place of a row among those of its worker and block.
    uint32_t PlaceOf(uint32_t row) const {
        return row_place_[row / together] * together + row % together;
    }

    /// The bytes of a packet's frame when this fragment is exchanged.
    uint16_t BytesOf(uint64_t packet, uint32_t fragment) const {
        return static_cast<uint16_t>(fragment_bytes_[fragment + packet % together]);
    }

    uint16_t CountOf(uint64_t packet) const { return packet_count_[packet / together]; }

    Contributions ContributionsOf(uint64_t packet) const {
        const uint64_t planned = packet / together;
        return contribution_.subspan(packet_start_[planned], packet_length_[planned]);
    }

    /// The row that a packet adds to with one of its contributions.
    uint32_t RowOf(uint32_t contribution, uint32_t packet) const {
        return (contribution & ~kLastOfPass) * together + packet % together;
    }

    const uint32_t blocks;
    const uint32_t fragments;
    const uint32_t together;

  private:
    std::vector<uint32_t> fragment_bytes_;
    std::span<const uint64_t> send_indptr_;
    std::span<const uint64_t> receive_indptr_;
    std::span<const uint32_t> receive_row_;
    std::span<const uint32_t> row_place_;
    std::span<const uint16_t> row_expected_;
    std::span<const uint16_t> packet_count_;
    std::span<const uint64_t> packet_start_;
    std::span<const uint32_t> packet_length_;
    std::span<const uint32_t> contribution_;
};
