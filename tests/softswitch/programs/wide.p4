// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0
#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>

// Wide arithmetic over registers: eight steps of keyless actions, then recirculation.
header frame_t { bit<48> dst; bit<48> src; bit<16> kind; }
header work_t { bit<8> passes; bit<8> slot; bit<1024> value; }
struct headers { frame_t frame; work_t work; }
struct metadata { bit<1024> total; bit<1024> carry; @field_list(1) bit<8> seen; }

parser Parse(packet_in b, out headers h, inout metadata m, inout standard_metadata_t s) {
    state start {
        b.extract(h.frame);
        transition select(h.frame.kind) { 0x88b5: work; default: accept; }
    }
    state work { b.extract(h.work); transition accept; }
}
control Verify(inout headers h, inout metadata m) { apply { } }
control Enter(inout headers h, inout metadata m, inout standard_metadata_t s) {
    register<bit<1024>, bit<8>>(256) sums;
    register<bit<1024>, bit<8>>(256) marks;
    #define MASK 0x00ff00ff00ff00ff00ff00ff00ff00ff
    action step() {
        bit<1024> a; bit<1024> b;
        sums.read(a, h.work.slot);
        marks.read(b, h.work.slot);
        bit<1024> even = a & MASK;
        bit<1024> odd = (a >> 8) & MASK;
        even = (even + (h.work.value & MASK)) & (MASK << 1 | 1);
        odd = odd + ((h.work.value >> 8) & MASK);
        m.carry = (even ^ odd) | (b << 3);
        m.total = (even | (odd << 8)) - (b & MASK);
        a = a + m.total;
        b = b ^ (m.carry >> 5) ^ ~h.work.value;
        sums.write(h.work.slot, a);
        marks.write(h.work.slot, b + 1);
        h.work.value = a;
    }
    apply {
        if (h.work.isValid()) {
            if (h.work.passes > 0) { step(); }
            if (h.work.passes > 1) { step(); }
            if (h.work.passes > 2) { step(); }
            if (h.work.passes > 3) { step(); }
            if (h.work.passes > 4) { step(); }
            if (h.work.passes > 5) { step(); }
            if (h.work.passes > 6) { step(); }
            if (h.work.passes > 7) { step(); }
            s.egress_spec = 2;
        } else {
            mark_to_drop(s);
        }
    }
}
control Leave(inout headers h, inout metadata m, inout standard_metadata_t s) {
    apply {
        if (h.work.slot & 0x80 != 0) {
            h.work.slot = h.work.slot & 0x7f;
            m.seen = m.seen + 1;
            recirculate_preserving_field_list(1);
        }
    }
}
control Compute(inout headers h, inout metadata m) { apply { } }
control Deparse(packet_out b, in headers h) { apply { b.emit(h.frame); b.emit(h.work); } }
V1Switch(Parse(), Verify(), Enter(), Leave(), Compute(), Deparse()) main;
