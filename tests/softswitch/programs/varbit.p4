#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>

// Fields whose length a packet brings: extracted, kept, copied, compared, hashed, emitted.
header head_t { bit<8> kind; bit<8> what; bit<32> size; }
header opts_t { bit<16> a; varbit<64> v; bit<8> b; }
header odd_t { bit<4> a; varbit<32> v; bit<4> b; }
header part_t { varbit<24> v; }
header sum_t { bit<16> checksum; bit<32> hash; }
header note_t { bit<8> reason; bit<8> length; bit<6> unused; bit<1> same; bit<1> depth; }
struct headers {
    note_t note; head_t head; opts_t opts; opts_t again; odd_t odd; part_t[2] parts; sum_t sum;
}
struct metadata { bit<8> left; }

parser Parse(packet_in b, out headers h, inout metadata m, inout standard_metadata_t s) {
    state start {
        b.extract(h.head);
        m.left = b.lookahead<bit<8>>();
        transition select(h.head.kind) {
            1: opts;
            2: odd;
            3: two;
            4: parts;
            5: words;
            6: summed;
            default: accept;
        }
    }
    state opts { b.extract(h.opts, h.head.size); transition accept; }
    state odd { b.extract(h.odd, h.head.size); transition accept; }
    state two {
        b.extract(h.opts, h.head.size);
        b.extract(h.again, (bit<32>) (h.opts.b << 3));
        transition accept;
    }
    state parts {
        b.extract(h.parts.next, h.head.size);
        transition select(b.lookahead<bit<8>>()) { 0xff: accept; default: parts; }
    }
    // As IPv4 has it: words, of which five are the header without its options.
    state words { b.extract(h.opts, (h.head.size << 2) - 20 << 3); transition accept; }
    state summed { b.extract(h.opts, h.head.size); b.extract(h.sum); transition accept; }
}
control Verify(inout headers h, inout metadata m) {
    apply {
        verify_checksum(h.sum.isValid(), { h.opts.a, h.opts.v, h.opts.b, 8w0 }, h.sum.checksum,
            HashAlgorithm.csum16);
    }
}
control Enter(inout headers h, inout metadata m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        h.note.setValid();
        h.note.unused = 0;
        h.note.reason = 0;
        if (s.parser_error == error.PacketTooShort) { h.note.reason = 1; }
        if (s.parser_error == error.StackOutOfBounds) { h.note.reason = 2; }
        if (s.parser_error == error.HeaderTooShort) { h.note.reason = 3; }
        if (s.parser_error == error.ParserInvalidArgument) { h.note.reason = 4; }
        if (s.checksum_error == 1) { h.note.reason = 5; }
        if (h.head.what == 1) { h.opts.setInvalid(); }
        if (h.head.what == 2) { h.opts.setInvalid(); h.opts.setValid(); h.opts.b = 0xbb; }
        if (h.head.what == 4) { h.again = h.opts; }
        if (h.head.what == 5) { h.again.setValid(); h.again.a = 0xaaaa; }
        if (h.head.what == 6) { h.parts.push_front(1); }
        if (h.head.what == 7) { h.parts.pop_front(1); }
        h.note.same = 0;
        if (h.opts.isValid() && h.again.isValid()) {
            if (h.head.what == 3) { h.opts.v = h.again.v; }
            if (h.head.what == 8) {
                varbit<64> kept = h.opts.v;
                h.opts.v = h.again.v;
                h.again.v = kept;
            }
            if (h.opts.v == h.again.v) { h.note.same = 1; }
        }
        h.note.depth = 0;
        if (h.parts[1].isValid()) { h.note.depth = 1; }
        if (h.head.what == 9) {
            h.sum.setValid();
            hash(h.sum.hash, HashAlgorithm.crc32, 32w0, { h.odd.a, h.odd.v, h.odd.b },
                64w0x100000000);
        }
    }
}
control Leave(inout headers h, inout metadata m, inout standard_metadata_t s) {
    apply { h.note.length = (bit<8>) s.packet_length; }
}
control Compute(inout headers h, inout metadata m) {
    apply {
        update_checksum(h.sum.isValid(), { h.opts.a, h.opts.v, h.opts.b, 8w0 }, h.sum.checksum,
            HashAlgorithm.csum16);
    }
}
control Deparse(packet_out b, in headers h) {
    apply {
        b.emit(h.note); b.emit(h.head); b.emit(h.opts); b.emit(h.again); b.emit(h.odd);
        b.emit(h.parts); b.emit(h.sum);
    }
}
V1Switch(Parse(), Verify(), Enter(), Leave(), Compute(), Deparse()) main;
