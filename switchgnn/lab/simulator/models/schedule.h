// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The arrays of a simulation, and the sends and contributions of each worker and block.
#pragma once

#include "events.h"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <span>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

constexpr char kMagic[] = "SGNNSIM1";
constexpr size_t kMagicBytes = 8;

struct Entry {
    char name[40];
    uint64_t item_bytes;
    uint64_t length;
    uint64_t offset;
};

/// The arrays that Python has written for a simulation; mapped, not copied.
class Arrays {
  public:
    explicit Arrays(const std::string& path) {
        const int file = open(path.c_str(), O_RDONLY);
        struct stat status;
        if (file < 0 || fstat(file, &status) != 0) {
            throw SimulationError("Cannot read " + path + ".");
        }
        bytes_ = static_cast<size_t>(status.st_size);
        mapped_ = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file, 0);
        close(file);
        if (mapped_ == MAP_FAILED) {
            mapped_ = nullptr;
            throw SimulationError("Cannot map " + path + ".");
        }
        const char* start = static_cast<const char*>(mapped_);
        if (bytes_ < kMagicBytes + sizeof(uint64_t) ||
            std::memcmp(start, kMagic, kMagicBytes) != 0) {
            throw SimulationError(path + " holds no arrays of a simulation.");
        }
        uint64_t count;
        std::memcpy(&count, start + kMagicBytes, sizeof(count));
        for (uint64_t i = 0; i < count; ++i) {
            Entry entry;
            std::memcpy(&entry, start + kMagicBytes + sizeof(count) + i * sizeof(Entry),
                        sizeof(Entry));
            blocks_[entry.name] = {start + entry.offset, entry.length, entry.item_bytes};
        }
    }

    ~Arrays() {
        if (mapped_) {
            munmap(mapped_, bytes_);
        }
    }

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

    const Block& Find(const std::string& name, size_t item_bytes) const {
        const auto found = blocks_.find(name);
        if (found == blocks_.end() || found->second.item_bytes != item_bytes) {
            throw SimulationError("The simulation has no array " + name + " of that type.");
        }
        return found->second;
    }

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
             std::vector<uint32_t> fragment_bytes)
        : blocks(blocks),
          fragments(fragments),
          together(together),
          fragment_bytes_(std::move(fragment_bytes)),
          send_indptr_(arrays.Get<uint64_t>("send_indptr")),
          receive_indptr_(arrays.Get<uint64_t>("receive_indptr")),
          receive_row_(arrays.Get<uint32_t>("receive_row")),
          row_place_(arrays.Get<uint32_t>("row_place")),
          row_expected_(arrays.Get<uint16_t>("row_expected")),
          packet_count_(arrays.Get<uint16_t>("packet_count")),
          packet_start_(arrays.Get<uint64_t>("packet_start")),
          packet_length_(arrays.Get<uint32_t>("packet_length")),
          contribution_(arrays.Get<uint32_t>("contribution")) {}

    Share ShareOf(uint32_t worker, uint32_t block) const {
        const size_t at = size_t{worker} * blocks + block;
        return {send_indptr_[at] * together, (send_indptr_[at + 1] - send_indptr_[at]) * together,
                (receive_indptr_[at + 1] - receive_indptr_[at]) * together};
    }

    /// How many packets a worker sends in a block for each sum that leaves in a block on average.
    double PacketsPerSum(uint32_t worker, uint32_t block) const {
        const double sums = static_cast<double>(row_expected_.size() * together) / blocks;
        return static_cast<double>(ShareOf(worker, block).packets) / sums;
    }

    /// The rows of the worker's fullest block.
    uint64_t RowsOf(uint32_t worker) const {
        uint64_t most = 0;
        for (uint32_t block = 0; block < blocks; ++block) {
            most = std::max(most, ShareOf(worker, block).rows);
        }
        return most;
    }

    /// Set the contributions that each row of the worker misses at the beginning of a block.
    void Expect(uint32_t worker, uint32_t block, std::vector<uint16_t>& left) const {
        const uint64_t first = receive_indptr_[size_t{worker} * blocks + block];
        const uint64_t rows = ShareOf(worker, block).rows;
        for (uint64_t i = 0; i < rows; ++i) {
            left[i] = row_expected_[receive_row_[first + i / together]];
        }
    }

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
