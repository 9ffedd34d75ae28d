#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>

// Frames to the controller and from it.
@controller_header("packet_in") header in_t { bit<9> port; bit<7> pad; bit<16> reason; }
@controller_header("packet_out") header out_t { bit<9> port; bit<7> pad; }
struct headers { in_t to; out_t from; }
struct metadata { }
parser Parse(packet_in b, out headers h, inout metadata m, inout standard_metadata_t s) {
    state start { transition select(s.ingress_port) { 510: from; default: accept; } }
    state from { b.extract(h.from); transition accept; }
}
control Verify(inout headers h, inout metadata m) { apply { } }
control Enter(inout headers h, inout metadata m, inout standard_metadata_t s) {
    apply {
        if (h.from.isValid()) {
            s.egress_spec = h.from.port;
            h.from.setInvalid();
        } else {
            s.egress_spec = 510;
            h.to.setValid();
            h.to.port = s.ingress_port;
            h.to.reason = 0x1234;
        }
    }
}
control Leave(inout headers h, inout metadata m, inout standard_metadata_t s) { apply { } }
control Compute(inout headers h, inout metadata m) { apply { } }
control Deparse(packet_out b, in headers h) { apply { b.emit(h.to); b.emit(h.from); } }
V1Switch(Parse(), Verify(), Enter(), Leave(), Compute(), Deparse()) main;
