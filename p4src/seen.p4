// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Each source is let through once per (round, block, fragment), whatever the
// network repeats or reorders (invariants 1 and 3). The tags of a source only
// grow, so the last one seen is all that must be remembered.
// Must be applied once per packet, on its first pass.
#ifndef _SEEN_
#define _SEEN_

#include "headers.p4"
#include "metadata.p4"
#include "sizes.p4"

control Seen(inout metadata_t meta) {
    register<tag_t>(MAX_SOURCES) last_tag;

    tag_t last;

    action look_and_remember() {
        last_tag.read(last, meta.source_index);
        last_tag.write(meta.source_index, meta.tag > last ? meta.tag : last);
    }

    apply {
        look_and_remember();
        if (meta.tag == last) {
            meta.outcome = DUPLICATE;
        } else if (meta.tag < last) {
            meta.outcome = STALE;
        }
    }
}

#endif
