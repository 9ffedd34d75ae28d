// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// What Python calls; native/library.py has the same signatures.
#pragma once

#include "engine.h"

typedef Engine<Program> Switch;

extern "C" {
Switch* switch_new() { return new Switch; }
void switch_free(Switch* s) { delete s; }
void switch_run(Switch* s) { s->run(); }
void switch_stop(Switch* s) { s->stop(); }
void switch_clear(Switch* s) { s->clear(); }
void switch_enter(Switch* s) { s->enter(); }
void switch_leave(Switch* s) { s->leave(); }
void switch_attach(Switch* s, int number, int kind, int fd, u64 frame_bytes, int may_refuse, Xdp* xdp) {
    s->attach(number, kind, fd, frame_bytes, may_refuse, xdp);
}
void switch_limits(Switch* s, i64 depth, double rate, double bandwidth) {
    s->queues.settings.depth = depth;
    s->queues.settings.rate = rate;
    s->queues.settings.bandwidth = bandwidth;
    s->queues.settings.limited |= rate != 0 || bandwidth != 0;
    s->queues.restart();
}
void switch_port_rate(Switch* s, int port, double rate) {
    s->queues.settings.has_rate[port] = true;
    s->queues.settings.rates[port] = rate;
    s->queues.settings.limited = true;
    s->queues.restart();
}
void switch_clock(Switch* s, double seconds) {
    if (s->fixed_clock < 0) s->started = (i64)(seconds * 1e9);
    s->fixed_clock = seconds;
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
void switch_drain(Switch* s) {
    s->drain();
    s->flush_all();
}
double switch_next_time(Switch* s) { return s->queues.next_time(); }
i64 switch_captured(Switch* s, int* port, u8* room, u64 size) {
    if (s->captured.empty()) return -1;
    const auto& first = s->captured.front();
    const i64 length = (i64)first.second.size();
    if ((u64)length <= size) {
        *port = first.first;
        memcpy(room, first.second.data(), (size_t)length);
        s->captured.pop_front();
    }
    return length;
}
// The length of the next notice, which it waits for; -1 at the end.
i64 switch_notice(Switch* s, u32* kind, u32* number, u8* room, u64 size) {
    std::unique_lock<std::mutex> lock(s->notice_mutex);
    s->notice_come.wait(lock, [s] { return s->notices_end || !s->notices.empty(); });
    if (s->notices.empty()) {
        s->notices_end = false;
        return -1;
    }
    const Notice& first = s->notices.front();
    const u64 length = first.bytes.size() < size ? first.bytes.size() : size;
    *kind = first.kind;
    *number = first.number;
    memcpy(room, first.bytes.data(), length);
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
i64* switch_lengths(Switch* s) { return s->queues.lengths; }
void switch_group(Switch* s, u64 group, const i32* ports, const u32* instances, u64 count) {
    std::vector<Replica> replicas;
    for (u64 i = 0; i < count; i++) replicas.push_back({ports[i], instances[i]});
    s->groups[group] = replicas;
}
void switch_no_group(Switch* s, u64 group) { s->groups.erase(group); }
void switch_session(Switch* s, u64 session, const i32* ports, const u32* instances, u64 count, i64 length) {
    std::vector<Replica> replicas;
    for (u64 i = 0; i < count; i++) replicas.push_back({ports[i], instances[i]});
    s->sessions[session] = {replicas, length};
}
void switch_no_session(Switch* s, u64 session) { s->sessions.erase(session); }

void table_put(Switch* s, int table, const u8* value, const u8* mask, const u8* low, const u8* high, i64 rank,
               i32 action, const u8* data, u64 size) {
    s->program.table(table)->put({value, mask, low, high, rank}, action, data, size);
}
// Entries one behind the other, each of one size.
void table_put_all(Switch* s, int table, u64 count, const u8* values, const u8* masks, const u8* lows,
                   const u8* highs, u64 key_size, const i64* ranks, const i32* actions, const u8* data, u64 size) {
    for (u64 i = 0; i < count; i++)
        table_put(s, table, values + i * key_size, masks + i * key_size, lows + i * key_size,
                  highs + i * key_size, ranks[i], actions[i], data + i * size, size);
}
u64* table_counts(Switch* s, int table, const u8* value, const u8* mask, const u8* low, const u8* high, i64 rank) {
    Entry* entry = s->program.table(table)->find({value, mask, low, high, rank});
    return entry ? &entry->packets : nullptr;
}
void table_remove(Switch* s, int table, const u8* value, const u8* mask, const u8* low, const u8* high, i64 rank) {
    s->program.table(table)->remove({value, mask, low, high, rank});
}
void table_clear(Switch* s, int table) { s->program.table(table)->clear(); }
void table_default(Switch* s, int table, i32 action, const u8* data, u64 size) {
    s->program.table(table)->set_fallback(action, data, size);
}
void* register_cells(Switch* s, int array) { return s->program.cells(array); }
u64* counter_packets(Switch* s, int array) { return s->program.packets(array); }
u64* counter_bytes(Switch* s, int array) { return s->program.bytes(array); }
}
