// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "base/schedule.h"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {
constexpr char kMagic[] = "SGNNSIM1";
constexpr size_t kMagicBytes = 8;

struct Entry {
    char name[40];
    uint64_t item_bytes;
    uint64_t length;
    uint64_t offset;
};
}  // namespace

Arrays::Arrays(const std::string& path) {
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
    if (bytes_ < kMagicBytes + sizeof(uint64_t) || std::memcmp(start, kMagic, kMagicBytes) != 0) {
        throw SimulationError(path + " holds no arrays of a simulation.");
    }
    uint64_t count;
    std::memcpy(&count, start + kMagicBytes, sizeof(count));
    for (uint64_t i = 0; i < count; ++i) {
        Entry entry;
        std::memcpy(&entry, start + kMagicBytes + sizeof(count) + i * sizeof(Entry), sizeof(Entry));
        blocks_[entry.name] = {start + entry.offset, entry.length, entry.item_bytes};
    }
}

Arrays::~Arrays() {
    if (mapped_) {
        munmap(mapped_, bytes_);
    }
}

const Arrays::Block& Arrays::Find(const std::string& name, size_t item_bytes) const {
    const auto found = blocks_.find(name);
    if (found == blocks_.end() || found->second.item_bytes != item_bytes) {
        throw SimulationError("The simulation has no array " + name + " of that type.");
    }
    return found->second;
}

Schedule::Schedule(const Arrays& arrays, uint32_t blocks, uint32_t fragments, uint32_t together,
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

Schedule::Share Schedule::ShareOf(uint32_t worker, uint32_t block) const {
    const size_t at = size_t{worker} * blocks + block;
    return {send_indptr_[at] * together, (send_indptr_[at + 1] - send_indptr_[at]) * together,
            (receive_indptr_[at + 1] - receive_indptr_[at]) * together};
}

uint64_t Schedule::RowsOf(uint32_t worker) const {
    uint64_t most = 0;
    for (uint32_t block = 0; block < blocks; ++block) {
        most = std::max(most, ShareOf(worker, block).rows);
    }
    return most;
}

void Schedule::Expect(uint32_t worker, uint32_t block, std::vector<uint16_t>& left) const {
    const uint64_t first = receive_indptr_[size_t{worker} * blocks + block];
    const uint64_t rows = ShareOf(worker, block).rows;
    for (uint64_t i = 0; i < rows; ++i) {
        left[i] = row_expected_[receive_row_[first + i / together]];
    }
}
