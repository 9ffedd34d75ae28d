#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>

// Every match kind, counters and a register; the result is written into the packet.
header probe_t { bit<8> table_id; bit<16> a; bit<12> b; bit<4> pad; bit<16> result; }
struct headers { probe_t probe; }
struct metadata { }

parser Parse(packet_in b, out headers h, inout metadata m, inout standard_metadata_t s) {
    state start { b.extract(h.probe); transition accept; }
}
control Verify(inout headers h, inout metadata m) { apply { } }
control Enter(inout headers h, inout metadata m, inout standard_metadata_t s) {
    direct_counter(CounterType.packets_and_bytes) exact_hits;
    counter<bit<8>>(16, CounterType.packets_and_bytes) probes;
    register<bit<40>, bit<8>>(8) cells;
    action answer(bit<16> value) { h.probe.result = value; s.egress_spec = 1; }
    action counted(bit<16> value) { h.probe.result = value; exact_hits.count(); }
    action refuse() { mark_to_drop(s); }
    table exact_table {
        key = { h.probe.a : exact; h.probe.b : exact; }
        actions = { counted; refuse; @defaultonly NoAction; }
        default_action = NoAction();
        counters = exact_hits;
        size = 4;
    }
    table lpm_table {
        key = { h.probe.b : exact; h.probe.a : lpm; }
        actions = { answer; NoAction; }
        default_action = NoAction();
        size = 1024;
    }
    table single_lpm_table {
        key = { h.probe.a : lpm; }
        actions = { answer; NoAction; }
        default_action = NoAction();
        size = 1024;
    }
    table ternary_table {
        key = { h.probe.a : ternary; h.probe.b : ternary; }
        actions = { answer; NoAction; }
        default_action = NoAction();
        size = 1024;
    }
    table range_table {
        key = { h.probe.a : range; h.probe.b : ternary; }
        actions = { answer; NoAction; }
        default_action = NoAction();
        size = 1024;
    }
    table optional_table {
        key = { h.probe.a : optional; h.probe.b : optional; }
        actions = { answer; NoAction; }
        default_action = NoAction();
        size = 1024;
    }
    table const_table {
        key = { h.probe.a : ternary; }
        actions = { answer; refuse; }
        const default_action = answer(999);
        const entries = {
            0x1200 &&& 0xff00 : answer(1);
            0x1234 : answer(2);
            0x0034 &&& 0x00ff : answer(3);
            0xdead : refuse();
        }
    }
    table plain_default {
        actions = { answer; refuse; NoAction; }
        default_action = answer(7);
    }
    table hit_table {
        key = { h.probe.a : exact; }
        actions = { answer; NoAction; }
        default_action = NoAction();
        size = 65536;
    }
    table switch_table {
        key = { h.probe.a : exact; }
        actions = { answer; refuse; NoAction; }
        default_action = NoAction();
        size = 16;
    }
    apply {
        s.egress_spec = 1;
        probes.count(h.probe.table_id);
        if (h.probe.table_id == 0) { exact_table.apply(); }
        else if (h.probe.table_id == 1) { lpm_table.apply(); }
        else if (h.probe.table_id == 2) { single_lpm_table.apply(); }
        else if (h.probe.table_id == 3) { ternary_table.apply(); }
        else if (h.probe.table_id == 4) { range_table.apply(); }
        else if (h.probe.table_id == 5) { optional_table.apply(); }
        else if (h.probe.table_id == 6) { const_table.apply(); }
        else if (h.probe.table_id == 7) { plain_default.apply(); }
        else if (h.probe.table_id == 8) {
            if (hit_table.apply().hit) { h.probe.b = 1; } else { h.probe.b = 2; }
        } else if (h.probe.table_id == 9) {
            switch (switch_table.apply().action_run) {
                answer: { h.probe.b = 3; }
                refuse: { s.egress_spec = 4; }
                default: { h.probe.b = 5; }
            }
        } else if (h.probe.table_id == 10) {
            bit<40> old;
            cells.read(old, (bit<8>) h.probe.a[7:0]);
            h.probe.result = old[15:0];
            cells.write((bit<8>) h.probe.a[7:0], old + 1);
        }
    }
}
control Leave(inout headers h, inout metadata m, inout standard_metadata_t s) { apply { } }
control Compute(inout headers h, inout metadata m) { apply { } }
control Deparse(packet_out b, in headers h) { apply { b.emit(h.probe); } }
V1Switch(Parse(), Verify(), Enter(), Leave(), Compute(), Deparse()) main;
