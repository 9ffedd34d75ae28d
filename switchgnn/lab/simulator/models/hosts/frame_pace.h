// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The window of hosts that send longer frames than features: as many bytes, and it moves as TCP's.
#ifndef SWITCHGNN_FRAME_PACE_H
#define SWITCHGNN_FRAME_PACE_H

#include "hosts/congestion.h"
#include "network/packet.h"

#include <algorithm>

/// workers: of those that send features; what is acknowledged together stays.
inline PaceOptions
PaceInFrames(const PaceOptions& workers, uint32_t frame_bytes)
{
    // RFC 6928.
    constexpr double kTcpFirstWindow = 10;
    constexpr uint32_t kFeatureBytes = FrameBytes(Kind::FEATURE);
    PaceOptions pace = workers;
    const uint32_t bytes = workers.window * kFeatureBytes;
    // What has come stays in the window until the last frame of its group is acknowledged.
    pace.window = std::max(1U, bytes / frame_bytes) + workers.group - 1;
    pace.first_window = pace.safe_window =
        std::max(kTcpFirstWindow, workers.safe_window * kFeatureBytes / frame_bytes);
    pace.segment = 1;
    return pace;
}

#endif
