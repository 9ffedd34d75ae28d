// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// A queue in one array that grows by doubling.
#ifndef SWITCHGNN_RING_BUFFER_H
#define SWITCHGNN_RING_BUFFER_H

#include <cstddef>
#include <vector>

template <typename T>
class RingBuffer
{
  public:
    bool Empty() const
    {
        return size_ == 0;
    }

    size_t Size() const
    {
        return size_;
    }

    const T& Front() const
    {
        return items_[head_];
    }

    void Push(const T& item)
    {
        if (size_ == items_.size())
        {
            Grow();
        }
        items_[(head_ + size_) & (items_.size() - 1)] = item;
        ++size_;
    }

    T Pop()
    {
        const T item = items_[head_];
        head_ = (head_ + 1) & (items_.size() - 1);
        --size_;
        return item;
    }

  private:
    void Grow()
    {
        std::vector<T> larger(items_.empty() ? 16 : 2 * items_.size());
        for (size_t i = 0; i < size_; ++i)
        {
            larger[i] = items_[(head_ + i) & (items_.size() - 1)];
        }
        items_.swap(larger);
        head_ = 0;
    }

    std::vector<T> items_;
    size_t head_ = 0;
    size_t size_ = 0;
};

#endif
