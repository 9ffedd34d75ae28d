// Functions for Python, whose signatures native/build.py reads here.
#pragma once

#include "batches.h"
#include "engine.h"

typedef Engine<Program> Switch;

static std::vector<Replica> replicas(const i32* ports, const u32* instances, u64 count) {
    std::vector<Replica> made;
    for (u64 i = 0; i < count; i++) made.push_back({ports[i], instances[i]});
    return made;
}

extern "C" {
Switch* switch_new() { return new Switch; }
void switch_free(Switch* s) { delete s; }
void switch_run(Switch* s) { s->run(); }
void switch_stop(Switch* s) { s->stop(); }
void switch_clear(Switch* s) { s->clear(); }
void switch_enter(Switch* s) { s->enter(); }
void switch_leave(Switch* s) { s->leave(); }
void switch_attach(Switch* s, int number, int kind, int fd, u64 frame_bytes, int may_refuse) {
    s->attach(number, kind, fd, frame_bytes, may_refuse);
}
// Limits of all ports; 0: none.
void switch_limits(Switch* s, i64 depth, double bandwidth, const double* rates, int limited, const double* shares) {
    s->queues.depth = depth;
    s->queues.bandwidth = bandwidth;
    memcpy(s->queues.rates, rates, sizeof s->queues.rates);
    memcpy(s->queues.shares, shares, sizeof s->queues.shares);
    s->queues.limited = s->queues.has_lines = limited;
}
void switch_receive(Switch* s, int port, const u8* data, u64 length) {
    s->receive(port, data, length);
    s->flush_all();
}
int switch_again(Switch* s, u64 limit) {
    s->run_again(limit);
    s->flush_all();
    return !s->again.empty();
}
// Sets the clock, sends what may leave then, and returns when more may, -1: never.
double switch_tick(Switch* s, double seconds) {
    if (s->fixed_clock < 0) s->started = (i64)(seconds * 1e9);
    s->fixed_clock = seconds;
    s->drain();
    s->flush_all();
    return s->queues.next_time();
}
// Moves as many captured frames into a buffer as fit, each after its port and length, four bytes
// each. Returns the bytes used.
u64 switch_captured(Switch* s, u8* room, u64 size) {
    u64 used = 0;
    while (!s->captured.empty()) {
        const auto& [port, frame] = s->captured.front();
        const u32 head[2] = {(u32)port, (u32)frame.size()};
        if (frame.size() + sizeof head > size - used) break;
        memcpy(room + used, head, sizeof head);
        memcpy(room + used + sizeof head, frame.data(), frame.size());
        used += sizeof head + frame.size();
        s->captured.pop_front();
    }
    return used;
}
// Waits for the next packet-in and returns its length; -1 at the end.
i64 switch_notice(Switch* s, u8* room, u64 size) {
    std::unique_lock<std::mutex> lock(s->notice_mutex);
    s->notice_come.wait(lock, [s] { return s->notices_end || !s->notices.empty(); });
    if (s->notices.empty()) {
        s->notices_end = false;
        return -1;
    }
    const std::string& first = s->notices.front();
    const u64 length = first.size() < size ? first.size() : size;
    memcpy(room, first.data(), length);
    s->notices.pop_front();
    return (i64)length;
}
void switch_end_notices(Switch* s) {
    {
        std::lock_guard<std::mutex> lock(s->notice_mutex);
        s->notices_end = true;
    }
    s->notice_come.notify_all();
}
void switch_not_taken(Switch* s, int port) {
    s->counts.sent[port]--;
    s->counts.send_errors[port]++;
}
Counts* switch_counts(Switch* s) { return &s->counts; }
u64* switch_tail_drops(Switch* s) { return s->queues.tail_drops; }
// By port and class.
i64* switch_lengths(Switch* s) { return &s->queues.lengths[0][0]; }
void switch_group(Switch* s, u64 group, const i32* ports, const u32* instances, u64 count) {
    s->groups[group] = replicas(ports, instances, count);
}
void switch_session(Switch* s, u64 session, const i32* ports, const u32* instances, u64 count, i64 length) {
    s->sessions[session] = {replicas(ports, instances, count), length};
}

// Entries by key: see tables.h.
void table_put(Switch* s, int table, const u8* key, i32 action, u32 marks, const u8* data, u64 size) {
    s->program.tables[table]->put(key, action, marks, data, size);
}
i64 table_find(Switch* s, int table, const u8* key) {
    const u32 found = s->program.tables[table]->find(key);
    return found == NOWHERE ? -1 : (i64)found;
}
void table_remove(Switch* s, int table, u64 number) { s->program.tables[table]->remove((u32)number); }
u64 table_length(Switch* s, int table) { return s->program.tables[table]->records.used; }
u64 table_stride(Switch* s, int table) { return s->program.tables[table]->records.stride; }
// All records, valid until the table changes.
u8* table_memory(Switch* s, int table) { return s->program.tables[table]->records.memory; }
void table_default(Switch* s, int table, i32 action, const u8* data, u64 size) {
    s->program.tables[table]->set_fallback(action, data, size);
}

// Entries in P4Runtime messages: see batches.h.
Formats* formats_new(Switch* s, const u64* numbers) {
    return new Formats(numbers, s->program.tables);
}
void formats_free(Switch*, Formats* formats) { delete formats; }
// Null if the request has other updates than entries of exact tables; it must outlive the batch.
Batch* batch_read(Switch*, const Formats* formats, const u8* request, u64 size) {
    Batch* const batch = new Batch(*formats, request, size);
    if (batch->read()) return batch;
    delete batch;
    return nullptr;
}
void batch_free(Switch*, Batch* batch) { delete batch; }
u64 batch_length(Switch*, const Batch* batch) { return batch->items.size(); }
const u8* batch_rest(Switch*, const Batch* batch, u64* size) {
    *size = batch->rest.size();
    return batch->rest.data();
}
// Where an update is in the request: begin << 32 | length.
u64 batch_item(Switch*, const Batch* batch, u64 place) {
    const Batch::Item& item = batch->items[place];
    return (u64)item.begin << 32 | item.length;
}
u64 batch_apply(Switch*, const Batch* batch, u64 from, u64 to) { return batch->apply(from, to); }
Answer* answer_new(Switch*) { return new Answer; }
void answer_free(Switch*, Answer* answer) { delete answer; }
// A ReadResponse with some of the copied records of a table, valid until the next call.
const u8* answer_entries(Switch*, Answer* answer, const Formats* formats, u32 table, const u8* records, u64 from,
                         u64 count, u64* size) {
    const TableFormat& format = *format_with(formats->tables, &TableFormat::id, table);
    answer->entries(format, records + from * format.table->records.stride, count);
    *size = answer->out.bytes.size();
    return answer->out.bytes.data();
}
// The cells of a register; after all registers, the packets and the bytes of each counter.
u8* program_array(Switch* s, int number) { return s->program.arrays[number]; }
}
