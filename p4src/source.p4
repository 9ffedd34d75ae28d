// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Behind which port a source vertex is.
#ifndef _SOURCE_
#define _SOURCE_

#include "headers.p4"
#include "metadata.p4"
#include "sizes.p4"

control Source(in headers_t hdr, inout metadata_t meta) {
    // index is the place of the source in the register of Seen.
    action set_source(port_t port, bit<32> index) {
        meta.source_port = port;
        meta.source_index = index;
    }

    action unknown_vertex() {
        meta.outcome = UNKNOWN_VERTEX;
    }

    table source {
        key = {
            hdr.switchgnn.src_id: exact @name("src_id");
        }
        actions = {
            set_source;
            @defaultonly unknown_vertex;
        }
        const default_action = unknown_vertex;
        size = MAX_SOURCES;
    }

    apply {
        source.apply();
    }
}

#endif
