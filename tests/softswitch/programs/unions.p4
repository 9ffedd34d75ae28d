#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>

// Header unions and stacks of them: extraction, validity, assignment, comparison, look-up.
header head_t { bit<8> kind; bit<8> what; }
header one_t { bit<8> a; }
header two_t { bit<16> a; }
header three_t { bit<4> a; bit<20> b; }
header_union choice_t { one_t one; two_t two; three_t three; }
header tag_t { bit<8> more; }
header note_t {
    bit<1> failed; bit<1> any; bit<1> one; bit<1> two; bit<1> three; bit<1> same; bit<1> other;
    bit<1> list;
    bit<8> length;
}
struct headers {
    note_t note; head_t head; choice_t u; choice_t other; choice_t[3] list; tag_t tag;
}
struct metadata { bit<8> depth; }

parser Parse(packet_in b, out headers h, inout metadata m, inout standard_metadata_t s) {
    state start {
        b.extract(h.head);
        transition select(h.head.kind) {
            1: one;
            2: two;
            3: three;
            4: both;
            5: list;
            6: pair;
            default: accept;
        }
    }
    state one { b.extract(h.u.one); transition accept; }
    state two { b.extract(h.u.two); transition accept; }
    state three { b.extract(h.u.three); transition accept; }
    state both { b.extract(h.u.one); b.extract(h.u.two); transition accept; }
    state pair { b.extract(h.u.two); b.extract(h.other.two); transition accept; }
    state list {
        transition select(b.lookahead<bit<8>>()) {
            0x00 &&& 0xf0: list_one;
            0x10 &&& 0xf0: list_two;
            0x20 &&& 0xf0: list_three;
            default: last;
        }
    }
    state list_one { b.extract(h.list.next.one); transition list; }
    state list_two { b.extract(h.list.next.two); transition list; }
    state list_three { b.extract(h.list.next.three); transition list; }
    state last { b.extract(h.tag); transition accept; }
}
control Verify(inout headers h, inout metadata m) { apply { } }
control Enter(inout headers h, inout metadata m, inout standard_metadata_t s) {
    action write(bit<16> value) { h.u.two.setValid(); h.u.two.a = value; }
    action clear() { h.u.two.setInvalid(); }
    table kinds {
        key = {
            h.u.one.isValid(): exact;
            h.u.two.isValid(): exact;
            h.u.three.isValid(): exact;
            h.head.what: exact;
        }
        actions = { write; clear; NoAction; }
        default_action = NoAction();
    }
    apply {
        s.egress_spec = 1;
        h.note.setValid();
        if (s.parser_error != error.NoError) { h.note.failed = 1; } else { h.note.failed = 0; }
        if (h.head.what == 1) { h.u.one.setValid(); h.u.one.a = 0xaa; }
        if (h.head.what == 2) { h.u.two.setInvalid(); }
        if (h.head.what == 3) { h.other = h.u; }
        if (h.head.what == 4) { h.other = h.u; h.u.three.setValid(); h.u.three.b = 0x12345; }
        if (h.head.what == 5) { h.list[1].one.setValid(); h.list[1].one.a = 0xbb; }
        if (h.head.what == 6) { h.list[0] = h.list[2]; }
        if (h.head.what == 8) { h.list.push_front(1); }
        if (h.head.what == 9) { h.list.pop_front(1); }
        if (h.head.what == 7) { h.u = h.list[1]; }
        kinds.apply();
        h.note.any = 0;
        if (h.u.isValid()) { h.note.any = 1; }
        h.note.one = 0;
        if (h.u.one.isValid()) { h.note.one = 1; }
        h.note.two = 0;
        if (h.u.two.isValid()) { h.note.two = 1; }
        h.note.three = 0;
        if (h.u.three.isValid()) { h.note.three = 1; }
        h.note.same = 0;
        if (h.u == h.other) { h.note.same = 1; }
        h.note.other = 0;
        if (h.other.isValid()) { h.note.other = 1; }
        h.note.list = 0;
        if (h.list[0].two.isValid() && h.list[0].two.a == 0x1234) { h.note.list = 1; }
        h.note.length = 0;
    }
}
control Leave(inout headers h, inout metadata m, inout standard_metadata_t s) {
    apply { h.note.length = (bit<8>) s.packet_length; }
}
control Compute(inout headers h, inout metadata m) { apply { } }
control Deparse(packet_out b, in headers h) {
    apply {
        b.emit(h.note); b.emit(h.head); b.emit(h.u); b.emit(h.other); b.emit(h.list); b.emit(h.tag);
    }
}
V1Switch(Parse(), Verify(), Enter(), Leave(), Compute(), Deparse()) main;
