// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Signs of life. Each worker has a bit, its pulse, which it changes every second and
// says in every `done`; it repeats its last one also while it is busy with a block. The switch keeps the latest ones
// and hands them to whoever waits: a worker whose bit changes is alive, however long it takes.
// The worker decides when the bit changes, so that nobody sees it in step with that; the
// switch needs no clock, and compares nothing.
//
// A leaf says the pulses of all its workers in what it reports.
// Must be applied to a `done` that was let through, after Worker.
#ifndef _PULSE_
#define _PULSE_

#include "headers.p4"
#include "metadata.p4"

control Pulse(in headers_t hdr, inout metadata_t meta) {
    register<worker_set_t>(1) pulses;

    action keep() {
        pulses.read(meta.pulses, 0);
        meta.pulses = (meta.pulses & ~meta.worker_bit)
            | (hdr.barrier.workers & meta.worker_bit);
        pulses.write(0, meta.pulses);
    }

    apply {
        keep();
    }
}

#endif
