// The arrays of a simulation, and the sends and contributions of each worker and block.
#pragma once

#include "options.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <span>

/// The arrays that Python has written into a folder, a file each; mapped, not copied.
class Arrays {
  public:
    explicit Arrays(std::string folder) : folder_(std::move(folder)) {}

    template <typename T>
    std::span<const T> Get(const std::string& name) const {
        const auto bytes = Map(name);
        return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
    }

  private:
    std::span<const char> Map(const std::string& name) const {
        const int file = open((folder_ + "/" + name).c_str(), O_RDONLY);
        struct stat status;
        if (file < 0 || fstat(file, &status) != 0) {
            throw SimulationError("Cannot read the array " + name + ".");
        }
        const auto bytes = static_cast<size_t>(status.st_size);
        // Nothing cannot be mapped.
        void* start = bytes ? mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0) : nullptr;
        close(file);
        if (start == MAP_FAILED) throw SimulationError("Cannot map the array " + name + ".");
        return {static_cast<const char*>(start), bytes};
    }

    std::string folder_;
};

/// The sends of each worker in each block, and the rows that they contribute to. Packets are
/// numbered worker by worker, block by block, in sending order; rows (destinations of blocks) block
/// by block. Where fragments are exchanged together, a packet or row of the plan is as many packets
/// or rows one after another, a fragment each.
///
/// A unit is a fragment of a block; all blocks of fragment 0 come first. Unit k, from 0, uses pool
/// k mod `pools` of the slots. A pool's turns are its opening, with the number of the pool, and its
/// units, unit k with the number k + `pools`.
class Schedule {
    const Arrays& arrays_;
    const Options& options_;

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

    Schedule(const Arrays& arrays, const Options& options)
        : arrays_(arrays), options_(options) {
        for (size_t at = 1; at < receive_indptr_.size(); ++at) {
            sum_frames_ += (receive_indptr_[at] - receive_indptr_[at - 1] + rows - 1) / rows;
        }
    }

    uint32_t Units() const { return blocks * options_.fragments; }

    Share ShareOf(uint32_t worker, uint32_t block) const {
        const size_t at = size_t{worker} * blocks + block;
        return {send_indptr_[at] * together, (send_indptr_[at + 1] - send_indptr_[at]) * together,
                ReceivedRows(worker, block).size() * together};
    }

    /// How many packets a worker sends in a block for each that leaves with sums on average.
    double PacketsPerSum(uint32_t worker, uint32_t block) const {
        const double sums = static_cast<double>(sum_frames_ * together) / blocks;
        return static_cast<double>(ShareOf(worker, block).packets) / sums;
    }

    /// The first packet of a worker; the number of packets for the worker after the last.
    uint64_t FirstPacketOf(uint32_t worker) const {
        return send_indptr_[size_t{worker} * blocks] * together;
    }

    /// Set the contributions that each row of the worker misses at the beginning of a block. Those
    /// of a bundle are whole.
    void Expect(uint32_t worker, uint32_t block, std::vector<uint16_t>& left) const {
        const auto received = ReceivedRows(worker, block);
        left.resize(received.size() * together);
        for (uint64_t i = 0; i < left.size(); ++i) {
            left[i] = rows > 1 ? 1 : row_expected_[received[i / together]];
        }
    }

    /// The row of a rank among those of a worker and block.
    uint32_t RowAt(uint32_t worker, uint32_t block, uint64_t rank) const {
        return ReceivedRows(worker, block)[rank / together] * together + rank % together;
    }

    /// The rank of a row among those of a worker and block, which ascend.
    size_t RankOf(uint32_t worker, uint32_t block, uint32_t row) const {
        const auto received = ReceivedRows(worker, block);
        const auto found = std::ranges::lower_bound(received, row / together);
        return static_cast<size_t>(found - received.begin()) * together + row % together;
    }

    /// The bytes of a packet's frame when this fragment is exchanged. Zeros need no body.
    uint16_t BytesOf(uint64_t packet, uint32_t fragment) const {
        if (packet_bare_[packet / together]) return kShortestFrame;
        return static_cast<uint16_t>(options_.fragment_bytes[fragment + packet % together]);
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

    const uint32_t blocks = options_.blocks;
    const uint32_t together = options_.together;
    const uint32_t pools = options_.pools;
    /// Of a frame.
    const uint32_t rows = options_.rows;

  private:
    /// The plan's rows of a worker in a block, ascending.
    std::span<const uint32_t> ReceivedRows(uint32_t worker, uint32_t block) const {
        const uint64_t* const begin = &receive_indptr_[size_t{worker} * blocks + block];
        return receive_row_.subspan(begin[0], begin[1] - begin[0]);
    }

    std::span<const uint64_t> send_indptr_ = arrays_.Get<uint64_t>("send_indptr");
    std::span<const uint64_t> receive_indptr_ = arrays_.Get<uint64_t>("receive_indptr");
    std::span<const uint32_t> receive_row_ = arrays_.Get<uint32_t>("receive_row");
    std::span<const uint16_t> row_expected_ = arrays_.Get<uint16_t>("row_expected");
    std::span<const uint16_t> packet_count_ = arrays_.Get<uint16_t>("packet_count");
    std::span<const uint8_t> packet_bare_ = arrays_.Get<uint8_t>("packet_bare");
    std::span<const uint64_t> packet_start_ = arrays_.Get<uint64_t>("packet_start");
    std::span<const uint32_t> packet_length_ = arrays_.Get<uint32_t>("packet_length");
    std::span<const uint32_t> contribution_ = arrays_.Get<uint32_t>("contribution");
    uint64_t sum_frames_ = 0;
};
