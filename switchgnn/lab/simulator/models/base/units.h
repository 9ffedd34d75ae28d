// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Units and errors of all models.
#ifndef SWITCHGNN_UNITS_H
#define SWITCHGNN_UNITS_H

#include <cstdint>
#include <stdexcept>

/// Time since the start; 188 bytes at 100 Gbit/s are 15,040 of them.
using Picoseconds = int64_t;

constexpr double kPicosecondsPerSecond = 1e12;

/// What stops a simulation, in one sentence for the user.
class SimulationError : public std::runtime_error
{
  public:
    using std::runtime_error::runtime_error;
};

#endif
