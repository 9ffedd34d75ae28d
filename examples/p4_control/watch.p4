// Counts the well-formed SwitchGNN frames whose source is one vertex, which an
// operator chooses, whatever becomes of them afterwards. 0: none is watched.
#pragma once

#include "metadata.p4"

control Watch(in headers_t hdr, in metadata_t meta) {
    counter(1, CounterType.packets) watched;
    vertex_t watched_vertex;

    action set_watch(vertex_t vertex) {
        watched_vertex = vertex;
    }

    table watch {
        actions = { set_watch; }
        default_action = set_watch(0);
        size = 1;
    }

    apply {
        watch.apply();
        if (meta.outcome == PENDING && hdr.switchgnn.isValid()
                && watched_vertex != 0 && hdr.switchgnn.src_id == watched_vertex) {
            watched.count(0);
        }
    }
}
