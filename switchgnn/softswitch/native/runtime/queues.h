// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// Egress queues: a depth per port with tail drop, and optional limits on their speed. The Python
// of traffic_manager.py and lines.py says why.
#pragma once

#include "wide.h"

#include <deque>
#include <queue>
#include <utility>
#include <vector>

// A program whose ports have more than nine bits is refused.
constexpr int PORTS = 512;

template <class Packet> struct Queues {
    struct Line {
        std::deque<Packet*> packets;
        double free_at = 0, begin = 0, interval = 0, byte_time = 0;
        bool listed = false, blocked = false;
    };
    struct Settings {
        i64 depth = 64;
        double rate = 0, bandwidth = 0;  // 0: no limit
        double rates[PORTS] = {};
        bool has_rate[PORTS] = {};
        bool limited = false;
    } settings;
    bool attached[PORTS] = {};
    u64 tail_drops[PORTS] = {};
    i64 lengths[PORTS] = {};
    bool has_lines = false;
    std::deque<Packet*> ready;
    Line* lines[PORTS] = {};
    std::deque<int> turns;
    typedef std::pair<double, int> Due;
    std::priority_queue<Due, std::vector<Due>, std::greater<Due>> timed;

    // False: the queue is full, and the packet is counted as dropped.
    bool push(int port, Packet* packet, double now) {
        if (lengths[port] >= settings.depth) {
            tail_drops[port]++;
            return false;
        }
        packet->depth = lengths[port]++;
        Line* line = has_lines ? line_of(port) : nullptr;
        if (!line) {
            ready.push_back(packet);
            return true;
        }
        if (line->packets.empty() && line->free_at < now) line->free_at = now;
        line->packets.push_back(packet);
        list(port);
        return true;
    }
    Line* line_of(int port) {
        if (lines[port]) return lines[port];
        const double rate = settings.has_rate[port] ? settings.rates[port] : settings.rate;
        const double bandwidth = attached[port] ? settings.bandwidth : 0;
        if (rate == 0 && bandwidth == 0) return nullptr;
        lines[port] = new Line;
        lines[port]->interval = rate ? 1.0 / rate : 0;
        lines[port]->byte_time = bandwidth ? 8.0 / bandwidth : 0;
        return lines[port];
    }
    void list(int port) {
        Line* line = lines[port];
        if (!line->packets.empty() && !line->listed && !line->blocked) {
            line->listed = true;
            turns.push_back(port);
        }
    }
    Packet* pop(double now) {
        Packet* packet = nullptr;
        if (!ready.empty()) {
            packet = ready.front();
            ready.pop_front();
        } else if (!turns.empty() || !timed.empty()) {
            packet = pop_line(now);
        }
        if (packet) lengths[packet->port]--;
        return packet;
    }
    Packet* pop_line(double now) {
        while (!timed.empty() && timed.top().first <= now) {
            turns.push_back(timed.top().second);
            timed.pop();
        }
        while (!turns.empty()) {
            const int port = turns.front();
            turns.pop_front();
            Line* line = lines[port];
            if (line->blocked) {
                line->listed = false;
                continue;
            }
            if (line->free_at > now) {
                timed.push({line->free_at, port});
                continue;
            }
            line->begin = line->free_at;
            line->free_at += line->interval;
            Packet* packet = line->packets.front();
            line->packets.pop_front();
            if (line->packets.empty()) line->listed = false;
            else turns.push_back(port);
            return packet;
        }
        return nullptr;
    }
    void charge(int port, size_t size) {
        Line* line = lines[port];
        if (!line) return;
        const double end = line->begin + (double)size * line->byte_time;
        if (line->free_at < end) line->free_at = end;
    }
    void block(int port) {
        Line* line = lines[port];
        if (!line) {
            line = lines[port] = new Line;
            has_lines = true;
            std::deque<Packet*> others;
            for (Packet* packet : ready)
                ((int)packet->port == port ? line->packets : others).push_back(packet);
            ready.swap(others);
        }
        line->blocked = true;
    }
    void unblock(int port, double now) {
        Line* line = lines[port];
        if (!line) return;
        line->blocked = false;
        if (line->begin < now) line->begin = now;
        if (line->free_at < now) line->free_at = now;
        list(port);
    }
    // When the next packet may leave; negative: none waits.
    double next_time() const {
        if (!ready.empty() || !turns.empty()) return 0;
        return timed.empty() ? -1 : timed.top().first;
    }
    template <class Drop> void clear(Drop drop) {
        for (Packet* packet : ready) drop(packet);
        ready.clear();
        for (Line*& line : lines) {
            if (!line) continue;
            for (Packet* packet : line->packets) drop(packet);
            delete line;
            line = nullptr;
        }
        turns.clear();
        timed = {};
        memset(lengths, 0, sizeof lengths);
        restart();
    }
    void restart() { has_lines = settings.limited; }
};
