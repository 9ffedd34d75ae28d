// The Tofino program on v1model: the same controls, whose registers are pairs of words.
#include "emulation.p4"
#include "metadata.p4"
#include "parser.p4"
#include "ingress.p4"
#include "egress.p4"

control SwitchIngress(inout headers_t hdr,
                      inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    Port()      port;
    Pass()      pass;
    Departure() departure;

    apply {
        if (meta.loop.step == step_t.ARRIVE || meta.loop.step == step_t.REDUCE
                || meta.loop.step == step_t.REPORT
                || (hdr.barrier.isValid() && meta.loop.step != step_t.MOVE)) {
            port.apply(hdr, meta, standard_metadata);
        } else {
            pass.apply(hdr, meta, standard_metadata);
        }
        departure.apply(hdr, meta, standard_metadata);
    }
}

parser SwitchParser(packet_in packet,
                    out headers_t hdr,
                    inout metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    state start {
        transition select(meta.loop.step) {
            step_t.ARRIVE: parse_arrival;
            default: parse_looping_ethernet;
        }
    }

    state parse_arrival {
        meta.loop.port = standard_metadata.ingress_port;
        transition parse_arriving_ethernet;
    }

    PARSE_KINDS(arriving, parse_barrier, parse_waiting)
    PARSE_KINDS(looping, parse_done, parse_waiting)
    PARSE_DONE
    PARSE_BODIES
}

control SwitchDeparser(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr); }
}

#define BODY_OF(g) , hdr.group##g
#define CHECKED { SWITCHGNN_FIELDS, hdr.barrier, hdr.waiting EACH_GROUP(BODY_OF) }
#define TURN_OF(hdr) hdr.switchgnn.turn
#define ARRIVES(meta) (meta.loop.step == step_t.ARRIVE)
#include "../parser.p4"

V1Switch(SwitchParser(),
         VerifyChecksums(),
         SwitchIngress(),
         SwitchEgress(),
         ComputeChecksums(),
         SwitchDeparser()) main;
