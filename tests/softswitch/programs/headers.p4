#include <core.p4>
#define V1MODEL_VERSION 20200408
#include <v1model.p4>

// Odd widths, stacks, lookahead, verify, checksums and hashes.
error { BadMagic }
header magic_t { bit<3> low; bit<13> mid; int<8> signed_part; bit<40> wide; bit<24> tail; }
header label_t { bit<20> label; bit<3> tc; bit<1> last; bit<8> ttl; }
header sum_t { bit<16> words; bit<16> more; bit<16> checksum; bit<16> hash16; bit<32> hash32; }
header note_t { bit<8> parser_error; bit<8> checksum_error; bit<8> count; bit<8> kind; }
struct headers { magic_t magic; label_t[3] labels; sum_t sum; note_t note; }
struct metadata { bit<8> peeked; }

parser Parse(packet_in b, out headers h, inout metadata m, inout standard_metadata_t s) {
    state start {
        m.peeked = b.lookahead<bit<8>>();
        b.extract(h.magic);
        verify(h.magic.tail != 0xbadbad, error.BadMagic);
        transition select(h.magic.low, h.magic.mid) {
            (1, 0x0005 &&& 0x000f): labels;
            (2, _): sum;
            default: accept;
        }
    }
    state labels {
        b.extract(h.labels.next);
        transition select(h.labels.last.last) { 0: labels; default: after_labels; }
    }
    state after_labels {
        transition select(b.lookahead<bit<16>>()) { 0xffff: accept; default: sum; }
    }
    state sum { b.extract(h.sum); transition accept; }
}
control Verify(inout headers h, inout metadata m) {
    apply {
        verify_checksum(h.sum.isValid() && h.magic.low == 2, { h.sum.words, h.sum.more },
            h.sum.checksum, HashAlgorithm.csum16);
    }
}
control Enter(inout headers h, inout metadata m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        h.note.setValid();
        h.note.parser_error = 9;
        if (s.parser_error == error.NoError) { h.note.parser_error = 0; }
        if (s.parser_error == error.PacketTooShort) { h.note.parser_error = 1; }
        if (s.parser_error == error.StackOutOfBounds) { h.note.parser_error = 2; }
        if (s.parser_error == error.BadMagic) { h.note.parser_error = 3; }
        h.note.checksum_error = (bit<8>) s.checksum_error;
        h.note.kind = m.peeked;
        h.note.count = 0;
        if (h.labels[0].isValid()) { h.note.count = h.note.count + 1; }
        if (h.labels[1].isValid()) { h.note.count = h.note.count + 1; }
        if (h.labels[2].isValid()) { h.note.count = h.note.count + 1; }
        if (h.magic.isValid()) {
            if (h.magic.signed_part < 0) { h.magic.signed_part = h.magic.signed_part |-| 100; }
            else { h.magic.signed_part = h.magic.signed_part |+| 100; }
        }
        if (h.labels[0].isValid() && h.labels[0].tc == 7) { h.labels.pop_front(1); }
        else if (h.labels[0].isValid() && h.labels[0].tc == 6) {
            h.labels.push_front(1);
            h.labels[0].setValid();
            h.labels[0].label = 0xabcde;
        }
        if (h.sum.isValid()) {
            hash(h.sum.hash16, HashAlgorithm.crc16, 16w0, { h.sum.words, h.sum.more }, 32w0x10000);
            hash(h.sum.hash32, HashAlgorithm.crc32, 32w0, { h.sum.words, h.sum.more },
                64w0x100000000);
        }
    }
}
control Leave(inout headers h, inout metadata m, inout standard_metadata_t s) { apply { } }
control Compute(inout headers h, inout metadata m) {
    apply {
        update_checksum(h.sum.isValid(), { h.sum.words, h.sum.more }, h.sum.checksum,
            HashAlgorithm.csum16);
    }
}
control Deparse(packet_out b, in headers h) {
    apply { b.emit(h.note); b.emit(h.magic); b.emit(h.labels); b.emit(h.sum); }
}
V1Switch(Parse(), Verify(), Enter(), Leave(), Compute(), Deparse()) main;
