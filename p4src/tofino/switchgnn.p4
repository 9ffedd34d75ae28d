// SwitchGNN for a Tofino 2. Compile it with p4lang/p4c's Tofino back end (`make tofino`).
#include "chip.p4"
#include "metadata.p4"
#include "parser.p4"
#include "ingress.p4"
#include "egress.p4"

parser PortParser(packet_in packet,
                  out headers_t hdr,
                  out metadata_t meta,
                  out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        transition select(ig_intr_md.ingress_port) {
            FIRST_SET_PORT &&& FIRST_SET_PORT: parse_loop;
            default: parse_arrival;
        }
    }

    state parse_loop {
        packet.extract(meta.loop);
        transition parse_looping_ethernet;
    }

    state parse_arrival {
        meta.loop.setValid();
        meta.loop.step = step_t.ARRIVE;
        meta.loop.port = ig_intr_md.ingress_port;
        transition parse_arriving_ethernet;
    }

    PARSE_KINDS(arriving, parse_barrier, parse_waiting)
    PARSE_KINDS(looping, parse_done, parse_waiting)
    PARSE_DONE
    PARSE_BODIES
}

parser PassParser(packet_in packet,
                  out headers_t hdr,
                  out metadata_t meta,
                  out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(meta.loop);
        transition parse_looping_ethernet;
    }

    PARSE_KINDS(looping, accept, accept)
    PARSE_BODIES
}

// The ingress of a pipe. Without the names of these fields p4c 9.13.4 ends with an error of its own.
#define INGRESS(Part) \
    @pa_container_type("ingress", "meta.loop.tag_hi", "normal") \
    @pa_container_type("ingress", "hdr.switchgnn.turn", "normal") \
    control Part##Ingress(inout headers_t hdr, \
                          inout metadata_t meta, \
                          in ingress_intrinsic_metadata_t ig_intr_md, \
                          in ingress_intrinsic_metadata_from_parser_t ig_prsr_md, \
                          inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md, \
                          inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) { \
        Part()      part; \
        Departure() departure; \
        standard_metadata_t standard_metadata; \
        apply { \
            standard_metadata.ingress_port = ig_intr_md.ingress_port; \
            standard_metadata.parser_error = ig_prsr_md.parser_err; \
            standard_metadata.checksum_error = 0; \
            standard_metadata.mcast_grp = 0; \
            part.apply(hdr, meta, standard_metadata); \
            departure.apply(hdr, meta, standard_metadata); \
            ig_tm_md.qid = 4w0 ++ standard_metadata.priority; \
            if (standard_metadata.mcast_grp != 0) { \
                ig_tm_md.mcast_grp_a = standard_metadata.mcast_grp; \
            } else if (standard_metadata.egress_spec == DROPPED) { \
                ig_dprsr_md.drop_ctl = 1; \
            } else { \
                ig_tm_md.ucast_egress_port = standard_metadata.egress_spec; \
            } \
        } \
    }
INGRESS(Port)
INGRESS(Pass)

control IngressDeparser(packet_out packet,
                        inout headers_t hdr,
                        in metadata_t meta,
                        in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
    apply {
        packet.emit(meta.loop);
        packet.emit(hdr);
    }
}

// The headers that egress changes; the rest of a packet passes by.
parser EgressParser(packet_in packet,
                    out headers_t hdr,
                    out metadata_t meta,
                    out egress_intrinsic_metadata_t eg_intr_md) {
    state start {
        packet.extract(eg_intr_md);
        packet.extract(meta.loop);
        transition parse_leaving_ethernet;
    }

    PARSE_HEADERS(leaving, accept)
}

// The pipe of the loop sends to its own ports only.
control LoopEgress(inout headers_t hdr,
                   inout metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    Congestion() congestion;
    Around()     around;

    apply {
        congestion.apply(hdr, meta, standard_metadata, 0);
        around.apply(meta, standard_metadata);
    }
}

// The egress of a pipe.
#define EGRESS(Part) \
    control Part##Pipe(inout headers_t hdr, \
                       inout metadata_t meta, \
                       in egress_intrinsic_metadata_t eg_intr_md, \
                       in egress_intrinsic_metadata_from_parser_t eg_prsr_md, \
                       inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md, \
                       inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) { \
        Part() egress; \
        standard_metadata_t standard_metadata; \
        apply { \
            standard_metadata.egress_port = eg_intr_md.egress_port; \
            standard_metadata.egress_rid = eg_intr_md.egress_rid; \
            standard_metadata.enq_qdepth = eg_intr_md.enq_qdepth; \
            standard_metadata.packet_length = eg_intr_md.pkt_length; \
            standard_metadata.drop = 0; \
            egress.apply(hdr, meta, standard_metadata); \
            if (standard_metadata.drop == 1) { \
                eg_dprsr_md.drop_ctl = 1; \
            } \
            if (eg_intr_md.egress_port[8:8] == 0) { \
                meta.loop.setInvalid(); \
            } \
        } \
    }
EGRESS(SwitchEgress)
EGRESS(LoopEgress)

control EgressDeparser(packet_out packet,
                       inout headers_t hdr,
                       in metadata_t meta,
                       in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    Checksum() ipv4;

    apply {
        hdr.ipv4.hdr_checksum = ipv4.update(
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn,
              hdr.ipv4.total_len, hdr.ipv4.identification, hdr.ipv4.flags,
              hdr.ipv4.frag_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
              hdr.ipv4.src_addr, hdr.ipv4.dst_addr });
        packet.emit(meta.loop);
        packet.emit(hdr);
    }
}

// Of the pipes with the ports of workers, and of the one with those of the loop.
Pipeline(PortParser(), PortIngress(), IngressDeparser(),
         EgressParser(), SwitchEgressPipe(), EgressDeparser()) port;
Pipeline(PassParser(), PassIngress(), IngressDeparser(),
         EgressParser(), LoopEgressPipe(), EgressDeparser()) pass;
Switch(port, pass) main;
