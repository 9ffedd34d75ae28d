// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "base/arrays.h"

#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace
{
constexpr char kMagic[] = "SGNNSIM1";
constexpr size_t kMagicBytes = 8;

struct Entry
{
    char name[40];
    uint64_t item_bytes;
    uint64_t length;
    uint64_t offset;
};
} // namespace

Arrays::Arrays(const std::string& path)
{
    const int file = open(path.c_str(), O_RDONLY);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0)
    {
        throw SimulationError("Cannot read " + path + ".");
    }
    bytes_ = static_cast<size_t>(status.st_size);
    mapped_ = mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (mapped_ == MAP_FAILED)
    {
        mapped_ = nullptr;
        throw SimulationError("Cannot map " + path + ".");
    }
    const char* start = static_cast<const char*>(mapped_);
    if (bytes_ < kMagicBytes + sizeof(uint64_t) || std::memcmp(start, kMagic, kMagicBytes) != 0)
    {
        throw SimulationError(path + " holds no arrays of a simulation.");
    }
    uint64_t count;
    std::memcpy(&count, start + kMagicBytes, sizeof(count));
    for (uint64_t i = 0; i < count; ++i)
    {
        Entry entry;
        std::memcpy(&entry, start + kMagicBytes + sizeof(count) + i * sizeof(Entry), sizeof(Entry));
        blocks_[entry.name] = {start + entry.offset, entry.length, entry.item_bytes};
    }
}

Arrays::~Arrays()
{
    if (mapped_)
    {
        munmap(mapped_, bytes_);
    }
}

const Arrays::Block&
Arrays::Find(const std::string& name, size_t item_bytes) const
{
    const auto found = blocks_.find(name);
    if (found == blocks_.end() || found->second.item_bytes != item_bytes)
    {
        throw SimulationError("The simulation has no array " + name + " of that type.");
    }
    return found->second;
}
