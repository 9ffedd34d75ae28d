// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Lists of numbers as JSON.
#ifndef SWITCHGNN_JSON_H
#define SWITCHGNN_JSON_H

#include <ostream>

/// A further member of an object: [a, b, ...] with one number of each item.
template <typename Items, typename Number>
void
List(std::ostream& out, const char* name, const Items& items, Number number)
{
    out << ",\n \"" << name << "\": [";
    const char* comma = "";
    for (const auto& item : items)
    {
        out << comma << number(item);
        comma = ", ";
    }
    out << "]";
}

#endif
