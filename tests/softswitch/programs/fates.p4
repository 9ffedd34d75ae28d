#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>

// The packet orders its own fate; egress reports what it sees.
header order_t {
    bit<8> first; bit<8> second; bit<8> egress_order; bit<8> round;
    bit<16> argument;
}
header report_t {
    bit<16> ingress_port; bit<16> egress_port; bit<32> instance_type; bit<16> rid;
    bit<32> length; bit<16> kept; bit<16> dropped_meta; bit<32> queue_depth;
}
struct headers { order_t order; report_t report; }
struct metadata { @field_list(1) bit<16> kept; bit<16> lost; }

parser Parse(packet_in b, out headers h, inout metadata m, inout standard_metadata_t s) {
    state start { b.extract(h.order); transition accept; }
}
control Verify(inout headers h, inout metadata m) { apply { } }
control Obey(inout headers h, inout metadata m, inout standard_metadata_t s, in bit<8> order) {
    apply {
        if (order == 1) { mark_to_drop(s); }
        else if (order == 2) { s.egress_spec = (bit<9>) h.order.argument; }
        else if (order == 3) { s.mcast_grp = 1; }
        else if (order == 4) { clone_preserving_field_list(CloneType.I2E, 5, 1); }
        else if (order == 5) { resubmit_preserving_field_list(1); }
        else if (order == 6) { s.mcast_grp = 0; }
        else if (order == 7) { clone(CloneType.I2E, 6); }
        else if (order == 8) { s.egress_spec = 511; }
        else if (order == 9) { truncate(8); }
        else if (order == 11) { s.mcast_grp = 9; }
        else if (order[7:3] == 2) { s.priority = order[2:0]; }
    }
}
control Enter(inout headers h, inout metadata m, inout standard_metadata_t s) {
    Obey() first;
    Obey() second;
    apply {
        if (s.instance_type == 6) {
            s.egress_spec = 3;
            h.order.argument = m.kept;
            return;
        }
        s.egress_spec = 2;
        m.kept = m.kept + 0x11;
        m.lost = m.lost + 0x22;
        if (h.order.second != 12) { h.order.round = h.order.round + 1; }
        if (h.order.first == 12 && m.kept == 0x22) {
            h.order.argument = h.order.argument + 1;
            h.report.setValid();  // the parser takes it for payload
        }
        first.apply(h, m, s, h.order.first);
        if (h.order.second == 10) { exit; }
        second.apply(h, m, s, h.order.second);
    }
}
control Leave(inout headers h, inout metadata m, inout standard_metadata_t s) {
    apply {
        if (h.order.egress_order == 2) { clone_preserving_field_list(CloneType.E2E, 5, 1); h.order.egress_order = 0; }
        if (h.order.egress_order == 3) { h.order.egress_order = 0; mark_to_drop(s); clone(CloneType.E2E, 5); }
        if (h.order.egress_order == 4 && h.order.round < 3
            && (h.order.second != 12 || m.kept < 0x44)) {
            recirculate_preserving_field_list(1);
        } else {
            h.report.setValid();
            h.report.ingress_port = (bit<16>) s.ingress_port;
            h.report.egress_port = (bit<16>) s.egress_port;
            h.report.instance_type = s.instance_type;
            h.report.rid = s.egress_rid;
            h.report.length = s.packet_length;
            h.report.kept = m.kept;
            h.report.dropped_meta = m.lost;
            h.report.queue_depth = (bit<32>) s.enq_qdepth;
        }
        if (h.order.egress_order == 1) { mark_to_drop(s); }
    }
}
control Compute(inout headers h, inout metadata m) { apply { } }
control Deparse(packet_out b, in headers h) { apply { b.emit(h.order); b.emit(h.report); } }
V1Switch(Parse(), Verify(), Enter(), Leave(), Compute(), Deparse()) main;
