// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// What the background is told.
#ifndef SWITCHGNN_BACKGROUND_OPTIONS_H
#define SWITCHGNN_BACKGROUND_OPTIONS_H

#include <cstdint>

struct BackgroundOptions
{
    /// Share of the rate of each link that its flows take on average; 0: there is no background.
    double load;
    uint64_t seed;
};

#endif
