// Ordinary traffic between the hosts of a job: Ethernet switching by destination.
#pragma once

#include "metadata.p4"

control Forward(in headers_t hdr,
                inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    action forward(port_t port) {
        meta.outcome = FORWARDED;
        standard_metadata.egress_spec = port;
    }

    action flood() {
        meta.outcome = FLOODED;
        meta.flood = 1;
        standard_metadata.mcast_grp = GROUP_OF(meta, WORKERS_GROUP);
    }

    // All ports but the ingress port, including those to a switch above.
    action flood_stations() {
        meta.outcome = FLOODED;
        meta.flood = 1;
        standard_metadata.mcast_grp = GROUP_OF(meta, STATIONS_GROUP);
    }

    action unknown_station() { meta.outcome = UNKNOWN_STATION; }

    table station {
        key = { meta.own.job: exact @name("job"); hdr.ethernet.dst_addr: exact @name("dst_addr"); }
        actions = { forward; flood; flood_stations; @defaultonly unknown_station; }
        const default_action = unknown_station;
        size = MAX_STATIONS;
    }

    apply { station.apply(); }
}
