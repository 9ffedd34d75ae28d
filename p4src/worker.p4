// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Which worker is behind a port. Whatever a packet says of its sender is
// compared with this (invariant 6: a worker speaks for itself only). A spine has
// a leaf there, whose bits are those of all its workers; a leaf has spines above.
#ifndef _WORKER_
#define _WORKER_

#include "headers.p4"
#include "metadata.p4"
#include "sizes.p4"

control Worker(inout metadata_t meta, in port_t ingress_port) {
    action set_worker(worker_t worker, worker_set_t worker_bit) {
        meta.is_worker = 1;
        meta.worker = worker;
        meta.worker_bit = worker_bit;
    }

    action set_above() {
        meta.is_worker = 0;
        meta.from_above = 1;
    }

    action no_worker() {
        meta.is_worker = 0;
    }

    table worker {
        key = {
            ingress_port: exact @name("port");
        }
        actions = {
            set_worker;
            set_above;
            @defaultonly no_worker;
        }
        const default_action = no_worker;
        size = MAX_PORTS;
    }

    apply {
        worker.apply();
    }
}

#endif
