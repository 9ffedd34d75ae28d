// Several jobs on one switch: a packet's ingress port says whose it is. Plans, workers and packets use
// numbers from 0, as if each job were alone; this control finds the job's part of each register,
// counter and range of numbers, and no other control knows of jobs. What a packet claims can only
// choose within that part.
#pragma once

#include "metadata.p4"

// The job and the worker of a port. The sender that a packet names is compared with the worker
// (invariant 6: a worker speaks for itself only). A leaf below a spine has the bits of all its workers.
control WorkerPorts(inout metadata_t meta, in port_t ingress_port) {
    action set_worker(job_t job, worker_t worker, worker_set_t worker_bit) {
        meta.own.job = job;
        meta.is_worker = 1;
        meta.worker = worker;
        meta.own.worker = (index_t) worker;
        meta.worker_bit = worker_bit;
    }

    action set_above(job_t job) {
        meta.own.job = job;
        meta.from_above = 1;
    }

    table worker {
        key = { ingress_port: exact @name("port"); }
        actions = { set_worker; set_above; @defaultonly NoAction; }
        const default_action = NoAction;
        size = MAX_PORTS;
    }

    apply { worker.apply(); }
}

// Must be applied on the first pass only, after WorkerPorts.
control Jobs(in headers_t hdr, inout metadata_t meta) {
    // Where the job's ranges of slots in each bank, sources and workers begin, and its blocks, of which
    // number 0 is that of barriers. A number beyond the last one is a block that no entry has. The
    // controller remembers the rest: the name, when the job came, the length of the ranges, and that
    // of the sets of workers which share a sum.
    @noWarn("unused")
    action set_job(bit<128> name, bit<32> since,
                   bit<32> first_slot, bit<32> slots, bit<16> first_block, bit<16> last_block,
                   bit<32> first_source, bit<32> sources, bit<32> first_worker, bit<32> workers,
                   bit<16> first_set, bit<16> sets) {
#ifdef TOFINO
        meta.block = first_block + hdr.switchgnn.block_id;
        meta.last_block = last_block;
        meta.first_slot = (index_t) first_slot;
#else
        meta.loop.block = hdr.switchgnn.block_id <= last_block
            ? first_block + hdr.switchgnn.block_id : 0;
        meta.loop.first_slot = first_slot;
        meta.loop.first_worker = first_worker;
#endif
        meta.own.first_source = (index_t) first_source;
        meta.own.worker = meta.own.worker + (index_t) first_worker;
    }

    // newest_session: the highest number that an install has had, of any job.
    @noWarn("unused")
    action set_newest(bit<16> newest_session) {
    }

    table job {
        key = { meta.own.job: exact @name("job"); }
        actions = { set_job; @defaultonly set_newest; }
        default_action = set_newest(0);
        size = MAX_JOBS;
    }

#ifdef TOFINO

    JOIN_2(16, join_cell, meta.own.cell, 11w0, meta.own.job)
    JOIN_3(16, join_pool, meta.own.pool, 9w0, meta.own.job, hdr.switchgnn.pool)
    JOIN_3(16, join_groups, meta.own.groups, 10w0, meta.own.job, 1w0)

    apply {
        job.apply();
        join_cell();
        join_pool();
        join_groups();
    }
#else
    // Of what each job has equally much.
    action find_parts() {
        meta.own.cell = (bit<32>) meta.own.job;
        meta.own.pool = (meta.own.cell << 2) + (bit<32>) hdr.switchgnn.pool;
        meta.own.groups = (bit<16>) meta.own.job << 1;
        meta.own.first_outcome = meta.own.cell << OUTCOME_BITS;
        meta.own.first_reduce = (meta.own.cell - 1) << REDUCE_SLOT_BITS;
        meta.loop.first_passes = meta.own.cell << PASS_BITS;
        meta.loop.first_port = FIRST_LOOP_PORT + ((port_t) (meta.own.job - 1) << LOOP_LANE_BITS);
    }

    apply {
        job.apply();
        find_parts();
    }
#endif
}
