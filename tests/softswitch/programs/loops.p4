#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>

// Loops in actions: nested, left early, with the next turn begun early.
header numbers_t {
    bit<8> what; bit<8> count; bit<8> limit; bit<32> sum; bit<32> product; bit<8> turns;
}
struct headers { numbers_t n; }
struct metadata { }

parser Parse(packet_in b, out headers h, inout metadata m, inout standard_metadata_t s) {
    state start { b.extract(h.n); transition accept; }
}
control Verify(inout headers h, inout metadata m) { apply { } }
control Enter(inout headers h, inout metadata m, inout standard_metadata_t s) {
    register<bit<32>, bit<32>>(16) cells;

    action add_up(bit<8> step) {
        h.n.sum = 0;
        for (bit<8> i = 0; i < h.n.count; i = i + (step | 1)) { h.n.sum = h.n.sum + (bit<32>) i; }
    }
    action nested(bit<8> step) {
        h.n.product = 0;
        for (bit<8> i = 0; i < h.n.count; i = i + 1) {
            for (bit<8> j = i; j < h.n.limit; j = j + (step | 1)) {
                if (j == 6) { continue; }
                if (j == 9) { break; }
                h.n.product = h.n.product + 1;
            }
            h.n.turns = h.n.turns + 1;
        }
    }
    action search(bit<32> wanted) {
        h.n.turns = 0xff;
        for (bit<32> i = 0; i < 16; i = i + 1) {
            bit<32> found;
            cells.read(found, i);
            h.n.turns = (bit<8>) i;
            if (found == wanted) { break; }
            if (found == 0) { cells.write(i, wanted); break; }
        }
    }
    table work {
        key = { h.n.what: exact; }
        actions = { add_up; nested; search; NoAction; }
        const entries = {
            1: add_up(1);
            2: add_up(3);
            3: nested(1);
            4: nested(3);
            5: search(77);
            6: search(78);
        }
        default_action = NoAction();
    }
    apply {
        s.egress_spec = 1;
        work.apply();
    }
}
control Leave(inout headers h, inout metadata m, inout standard_metadata_t s) { apply { } }
control Compute(inout headers h, inout metadata m) { apply { } }
control Deparse(packet_out b, in headers h) { apply { b.emit(h.n); } }
V1Switch(Parse(), Verify(), Enter(), Leave(), Compute(), Deparse()) main;
