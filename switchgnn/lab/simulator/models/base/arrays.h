// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The arrays of a schedule, as switchgnn/simulator/array_file.py writes them; mapped, not copied.
#ifndef SWITCHGNN_ARRAYS_H
#define SWITCHGNN_ARRAYS_H

#include "base/units.h"

#include <map>
#include <span>
#include <string>

class Arrays
{
  public:
    explicit Arrays(const std::string& path);
    ~Arrays();
    Arrays(const Arrays&) = delete;
    Arrays& operator=(const Arrays&) = delete;

    template <typename T>
    std::span<const T> Get(const std::string& name) const
    {
        const Block& block = Find(name, sizeof(T));
        return {reinterpret_cast<const T*>(block.data), block.length};
    }

  private:
    struct Block
    {
        const char* data;
        size_t length;
        size_t item_bytes;
    };

    const Block& Find(const std::string& name, size_t item_bytes) const;

    void* mapped_ = nullptr;
    size_t bytes_ = 0;
    std::map<std::string, Block> blocks_;
};

#endif
