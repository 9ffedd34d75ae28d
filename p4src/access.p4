// Checks that a packet may touch what it names: the vertices are known, and the sender owns them
// (invariant 6). Packets that pass to or from a switch above or recover a sum are sent on.
// Must be applied once per packet, on its first pass, after WorkerPorts and Tier.
#pragma once

#include "metadata.p4"

// The port and the slot of a destination vertex.
control Destination(in headers_t hdr, inout metadata_t meta) {
    action set_destination(port_t port, bit<4> bank, slot_t slot, count_t expected) {
        meta.destination_port = port;
        meta.destination_bank = bank;
        meta.destination_slot = slot;
        meta.destination_expected = expected;
    }

    // The sum is completed above; the slot here holds a part, or expected is 0.
    action set_distant(port_t port, bit<4> bank, slot_t slot, count_t expected, port_t above) {
        set_destination(port, bank, slot, expected);
        meta.destination_above = above;
    }

    // All that contribute to the slot await its sum (a vertex cut): they are the group.
    action set_replicas(bit<16> group, bit<4> bank, slot_t slot, count_t expected, port_t above) {
        set_distant(0, bank, slot, expected, above);
        meta.destination_group = group;
    }

    action unknown_destination() {
        UNKNOWN(meta, UNKNOWN_VERTEX, destination)
    }

    table destination {
        key = {
            meta.loop.block: exact @name("block_id"); hdr.switchgnn.dst_id: exact @name("dst_id");
        }
        actions = { set_destination; set_distant; set_replicas; @defaultonly unknown_destination; }
        const default_action = unknown_destination;
        size = MAX_RESULTS;
    }

    apply { destination.apply(); }
}

// The port of a source vertex.
control Source(in headers_t hdr, inout metadata_t meta) {
    // index: of the source among those of the job.
    action set_source(port_t port, bit<32> index) {
        meta.source_port = port;
        meta.source_index = meta.own.first_source + (index_t) index;
    }

    action unknown_vertex() {
        UNKNOWN(meta, UNKNOWN_VERTEX, source)
    }

    table source {
        key = { meta.own.job: exact @name("job"); hdr.switchgnn.src_id: exact @name("src_id"); }
        actions = { set_source; @defaultonly unknown_vertex; }
        const default_action = unknown_vertex;
        size = MAX_SOURCES;
    }

    apply { source.apply(); }
}

#ifndef TOFINO
// A partial sum goes into the slot of the destination that it names. The destination must
// expect partial sums of the sender; so only contributors ask for the sums of a vertex cut. A count
// above the expected one would complete or release the slot for all. The switch does not know how
// many rows were added up.
control Partial(in headers_t hdr, inout metadata_t meta) {
    // One bit per worker; on a spine, for each worker below a leaf that sends a part.
    action set_senders(worker_set_t senders) { meta.partial_senders = senders; }

    table partial {
        key = {
            meta.loop.block: exact @name("block_id"); hdr.switchgnn.dst_id: exact @name("dst_id");
        }
        actions = { set_senders; @defaultonly NoAction; }
        const default_action = NoAction;
        size = MAX_RESULTS;
    }

    apply {
        partial.apply();
        if ((meta.partial_senders & meta.worker_bit) == 0) {
            meta.outcome = WRONG_PORT;
        } else if (hdr.switchgnn.kind == kind_t.FEATURE
                   && (hdr.switchgnn.count == 0
                       || hdr.switchgnn.count > meta.destination_expected)) {
            meta.outcome = WRONG_COUNT;
        }
    }
}

// What goes to a destination goes to all that have a replica, but not back up.
#define TO_REPLICAS(meta, standard_metadata) \
    if (meta.destination_group != 0) { \
        standard_metadata.mcast_grp = meta.destination_group; \
        meta.flood = meta.from_above; \
    }

// Between a worker and a switch above: a recall or a fetch of a sum that is completed above
// goes up, and the answers come down. A switch above has checked the owner.
//
// A MISSING from above reports an incomplete sum. With `resend`, this switch's part may have
// been lost on its way: its slot is looked at as by a recall, and a complete part goes up once
// more while the MISSING goes down.
control Passage(inout headers_t hdr,
                inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    action pass_on(port_t port) {
        meta.outcome = PASSED_ON;
        standard_metadata.egress_spec = port;
    }

    action pass_down() {
        pass_on(meta.destination_port);
        TO_REPLICAS(meta, standard_metadata)
    }

    apply {
        if (meta.from_above == 0) {
            if (meta.destination_above != 0 && hdr.switchgnn.kind != kind_t.FEATURE) {
                pass_on(meta.destination_above);
            }
        } else if (hdr.switchgnn.kind == kind_t.FETCH) {
            pass_on(meta.source_port);
        } else if (hdr.switchgnn.kind == kind_t.SUM) {
            pass_down();
        } else if (hdr.switchgnn.kind == kind_t.MISSING) {
            pass_down();
            meta.look_again = hdr.switchgnn.resend;
        }
    }
}

// How a worker gets a sum that does not come. A recall asks the switch to send it again and adds
// nothing; with `resend`, it asks for the partial sums of the leaves as well. A fetch asks the
// owner for a feature and releases the slot: the worker now sums this vertex itself, the slot
// can no longer complete, and so no sum follows a fetch. The owner's answer, a feature with
// `resend`, bypasses the slots.
//
// A recall and a fetch touch their slot as a contribution without lanes, which are zeros, with a
// count of 0 or of RELEASED.
// Must be applied after the sender was found to own what it names.
control Recovery(inout headers_t hdr,
                 inout metadata_t meta,
                 inout standard_metadata_t standard_metadata) {
    action relay_to(port_t port, outcome_t outcome) {
        meta.outcome = outcome;
        standard_metadata.egress_spec = port;
    }

    action touch(count_t count) {
        meta.touches_slots = 1;
        hdr.switchgnn.count = count;
    }

    apply {
        if (hdr.switchgnn.kind == kind_t.FEATURE) {
            // To its worker, the worker's leaf, or a switch above.
            relay_to(meta.destination_port, RESENT);
            TO_REPLICAS(meta, standard_metadata)
        } else if (hdr.switchgnn.kind == kind_t.FETCH) {
            relay_to(meta.source_port, FETCHED);
            touch(RELEASED);
        } else if (hdr.switchgnn.kind == kind_t.MISSING) {
            // Its count goes around the loop with it.
            meta.loop.accepted = hdr.switchgnn.count;
            touch(0);
        } else {
            meta.outcome = RECALLED;
            touch(0);
        }
    }
}

control Access(inout headers_t hdr,
              inout metadata_t meta,
              inout standard_metadata_t standard_metadata) {
    Destination() destination;
    Source()      source;
    Partial()     partial;
    Passage()     passage;
    Recovery()    recovery;

    // Released slots per worker, to identify workers that release too often.
    counter(MAX_WORKERS, CounterType.packets) releases;

    port_t owner_port;
    bool   is_feature;

    apply {
        // A vertex's feature names no destination. That of a fetch from above is not here.
        if (!IS_PLAIN_FEATURE(hdr.switchgnn)
                && (hdr.switchgnn.kind != kind_t.FETCH || meta.from_above == 0)) {
            destination.apply(hdr, meta);
        }
        // The source of a feature from above, or of a fetch that goes up, is not here.
        if ((hdr.switchgnn.kind == kind_t.FEATURE && meta.from_above == 0)
                || (hdr.switchgnn.kind == kind_t.FETCH && meta.destination_above == 0)) {
            source.apply(hdr, meta);
        }
        if (meta.outcome == PENDING && meta.from_above == 0) {
            // A feature speaks for its source, a recall or a fetch for its destination.
            is_feature = hdr.switchgnn.kind == kind_t.FEATURE;
            owner_port = is_feature ? meta.source_port : meta.destination_port;
            if (owner_port != meta.loop.port && (is_feature || meta.destination_group == 0)) {
                meta.outcome = WRONG_PORT;
            } else if (is_feature ? IS_PARTIAL(hdr.switchgnn.src_id)
                       : meta.destination_group != 0) {
                partial.apply(hdr, meta);
            }
            if (meta.outcome == PENDING && hdr.switchgnn.kind == kind_t.FETCH) {
                releases.count(meta.own.worker);
            }
        }
        if (meta.outcome == PENDING) {
            passage.apply(hdr, meta, standard_metadata);
        }
        if (meta.look_again == 1
                || (meta.outcome == PENDING
                    && (hdr.switchgnn.kind != kind_t.FEATURE || hdr.switchgnn.resend == 1))) {
            recovery.apply(hdr, meta, standard_metadata);
        }
    }
}
#endif
