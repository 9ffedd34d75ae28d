// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

#include "base/schedule.h"

#include <algorithm>

Schedule::Schedule(const Arrays& arrays,
                   uint32_t blocks,
                   uint32_t fragments,
                   uint32_t together,
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
      contribution_(arrays.Get<uint32_t>("contribution"))
{
}

Schedule::Share
Schedule::ShareOf(uint32_t worker, uint32_t block) const
{
    const size_t at = size_t{worker} * blocks + block;
    return {send_indptr_[at] * together,
            (send_indptr_[at + 1] - send_indptr_[at]) * together,
            (receive_indptr_[at + 1] - receive_indptr_[at]) * together};
}

uint64_t
Schedule::RowsOf(uint32_t worker) const
{
    uint64_t most = 0;
    for (uint32_t block = 0; block < blocks; ++block)
    {
        most = std::max(most, ShareOf(worker, block).rows);
    }
    return most;
}

void
Schedule::Expect(uint32_t worker, uint32_t block, std::vector<uint16_t>& left) const
{
    const uint64_t first = receive_indptr_[size_t{worker} * blocks + block];
    const uint64_t rows = ShareOf(worker, block).rows;
    for (uint64_t i = 0; i < rows; ++i)
    {
        left[i] = row_expected_[receive_row_[first + i / together]];
    }
}
