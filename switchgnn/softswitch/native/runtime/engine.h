// The packet path, as in forwarding.py, and the loop that waits for frames, timers and controllers,
// as EventLoop in switch.py. One thread runs both.
#pragma once

#include "host.h"
#include "ports.h"

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include <unordered_map>

enum Instance { NORMAL = 0, INGRESS_CLONE = 1, EGRESS_CLONE = 2, RECIRCULATED = 4, REPLICATED = 5, RESUBMITTED = 6 };

constexpr size_t SPARE_FRAMES = 1024, AGAIN_PER_TURN = 256, NOTICES = 4096;
constexpr int CAREFUL_FRAMES = 512;
constexpr u32 WAKE = ~0u;

struct Counts {
    u64 received[PORTS], sent[PORTS], unattached[PORTS], send_errors[PORTS];
    u64 ingress_drops, egress_drops, recirculated, resubmitted, again_drops, without_program, failures;
};

// Bytes shared by copies of a packet.
struct Frame {
    u32 users, length, room;
    u8 data[];
};

struct Frames {
    std::vector<Frame*> spare;

    ~Frames() {
        for (Frame* frame : spare) free(frame);
    }
    // A frame of one user, with room for some bytes and a few more.
    Frame* take(size_t room) {
        if (!spare.empty()) {
            Frame* const frame = spare.back();
            spare.pop_back();
            if (frame->room >= room) {
                frame->users = 1;
                return frame;
            }
            free(frame);
        }
        const size_t whole = (room + 2047) / 2048 * 2048;
        Frame* const frame = (Frame*)malloc(sizeof(Frame) + whole + 8);
        frame->users = 1, frame->room = (u32)whole;
        return frame;
    }
    void release(Frame* frame) {
        if (--frame->users) return;
        if (spare.size() < SPARE_FRAMES) spare.push_back(frame);
        else free(frame);
    }
};

struct Replica { int port; i64 instance; };
struct Session { std::vector<Replica> replicas; i64 length; };

template <class Program> struct Engine : Host {
    typedef typename Program::State State;
    typedef typename Program::Kept Kept;
    struct Packet {
        State state;
        Frame* frame;
        i64 pos, type, length, cut, arrived, instance, since, depth;
        u64 port;
        u8 of_class;
    };
    // A packet whose headers are still those of its frame, or any frame.
    struct Again { Packet* packet; Frame* frame; i64 type; Kept kept; };

    Program program;
    Queues<Packet> queues;
    Port ports[PORTS];
    Counts counts = {};
    std::unordered_map<u64, std::vector<Replica>> groups;
    std::unordered_map<u64, Session> sessions;
    // By the port that a packet recirculates from; resubmitted packets are at DROP_PORT, which no
    // packet leaves from.
    RoundRobin<Again> again;
    std::vector<Packet*> spare;
    std::vector<int> to_flush;
    std::deque<std::pair<int, std::string>> captured;
    std::vector<u8> scratch_room;
    Frames frames;
    Arrivals arrivals;
    bool waiting = false;
    int held = 0;
    i64 started;
    double fixed_clock = -1;

    // Of the thread.
    std::recursive_mutex mutex;
    std::atomic<int> callers{0};
    std::atomic<bool> stopping{false};
    int wake, epoll;

    // For the thread that passes packet-ins to Python.
    std::mutex notice_mutex;
    std::condition_variable notice_come;
    std::deque<std::string> notices;
    bool notices_end = false;

    Engine() : program(*this), scratch_room((1 << 17) + Program::hash_bytes) {
        scratch = scratch_room.data();
        wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        epoll = epoll_create1(EPOLL_CLOEXEC);
        listen(EPOLL_CTL_ADD, wake, EPOLLIN, WAKE);
        started = nanoseconds();
    }
    ~Engine() {
        close(epoll);
        close(wake);
        clear();
        for (Packet* packet : spare) delete packet;
    }

    void clear() {
        queues.clear([this](Packet* packet) { drop(packet); });
        for (Port& port : ports) port.queued = 0;
        while (!again.empty()) {
            const Again item = again.take();
            give_up(item.packet, item.frame);
        }
        waiting = false;
    }

    static i64 nanoseconds() {
        timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec * 1000000000ll + now.tv_nsec;
    }
    double clock() const { return fixed_clock >= 0 ? fixed_clock : (double)nanoseconds() * 1e-9; }
    // Of queues that wait for a line.
    double line_clock() const { return queues.has_lines ? clock() : 0; }
    i64 micros() const {
        if (!Program::uses_time) return 0;
        return fixed_clock >= 0 ? (i64)(fixed_clock * 1e6) - started / 1000 : (nanoseconds() - started) / 1000;
    }

    void attach(int number, int kind, int fd, size_t frame_bytes, bool may_refuse) {
        Port& port = ports[number];
        held -= port.held;
        count_queued(number, 0);
        port = Port();
        port.may_refuse = may_refuse;
        port.kind = (PortKind)kind;
        port.fd = fd;
        port.frame_bytes = frame_bytes;
        port.departures.cuts = kind == SOCKET && Departures::is_udp(fd);
        port.beside = kind == PACKET_SOCKET ? TAGS : kind == SOCKET && arrive_whole(fd) ? SEGMENTS : NOTHING;
        if (kind != CONTROLLER) queues.attached[number] = kind != NONE;
        if (kind == SOCKET || kind == PACKET_SOCKET) listen(EPOLL_CTL_ADD, fd, EPOLLIN, (u32)number);
    }
    void listen(int operation, int fd, u32 events, u32 data) {
        epoll_event event = {};
        event.events = events;
        event.data.u32 = data;
        epoll_ctl(epoll, operation, fd, &event);
    }

    // Copies the bytes only of packets that have to wait.
    struct Source {
        Frames& frames;
        const u8* data;
        size_t length;
        Frame* frame = nullptr;
        Source(Frames& all, const u8* d, size_t n) : frames(all), data(d), length(n) {}
        // Takes over one user.
        Source(Frames& all, Frame* f) : frames(all), data(f->data), length(f->length), frame(f) {}
        Source(const Source&) = delete;
        ~Source() {
            if (frame) frames.release(frame);
        }
        // The frame, with one user more.
        Frame* shared() {
            if (!frame) {
                frame = frames.take(length);
                frame->length = (u32)length;
                memcpy(frame->data, data, length);
            }
            frame->users++;
            return frame;
        }
    };
    Packet* fresh() {
        if (spare.empty()) return new Packet;
        Packet* const packet = spare.back();
        spare.pop_back();
        return packet;
    }
    Packet* make(const State& state, Source& source, const Fate& fate, i64 type, i64 cut, i64 instance) {
        Packet* const packet = fresh();
        packet->state = state;
        return fill(packet, source, fate, type, cut, instance);
    }
    Packet* fill(Packet* packet, Source& source, const Fate& fate, i64 type, i64 cut, i64 instance) {
        packet->frame = source.shared();
        return describe(packet, source, fate, type, cut, instance);
    }
    Packet* describe(Packet* packet, const Source& source, const Fate& fate, i64 type, i64 cut, i64 instance) {
        packet->pos = fate.pos, packet->type = type, packet->length = fate.length, packet->cut = cut;
        packet->arrived = (i64)source.length, packet->instance = instance, packet->since = micros();
        return packet;
    }
    void drop(Packet* packet) {
        frames.release(packet->frame);
        spare.push_back(packet);
    }
    void give_up(Packet* packet, Frame* frame) { packet ? drop(packet) : frames.release(frame); }
    void enqueue(u64 port, Packet* packet, u64 priority) {
        waiting = true;
        packet->port = port;
        packet->of_class = (u8)(priority % CLASSES);
        if (!queues.push((int)port, packet, line_clock())) drop(packet);
    }
    // Takes over one user of the frame, and with it a packet whose headers are still those of its bytes.
    void enter_again(u64 port, Packet* packet, Frame* frame, i64 type, i64 list, const State& state) {
        Again* const item = again.add(port);
        if (!item) {
            counts.again_drops++;
            give_up(packet, frame);
            return;
        }
        item->packet = packet, item->frame = frame, item->type = type;
        Program::keep(list, state, item->kept);
    }

    void receive(int port, const u8* data, size_t length) {
        counts.received[port]++;
        Source source(frames, data, length);
        Packet* const packet = fresh();
        packet->state = State();
        pass(packet, -1, source, (u64)port, NORMAL, nullptr);
    }

    // Takes over a packet with an empty state, or one whose headers have been parsed up to a position.
    void pass(Packet* packet, i64 parsed, Source& source, u64 port, i64 type, const Kept* kept) {
        State& state = packet->state;
        Fate fate;
        const i64 length = (i64)source.length;
        program.ingress(source.data, length, port, type, type == NORMAL ? micros() : 0, kept, fate, state, parsed);
        if (!leave_ingress(packet, source, fate, port)) spare.push_back(packet);
        if (waiting) drain();
    }
    // Whether the packet itself goes on.
    bool leave_ingress(Packet* packet, Source& source, const Fate& fate, u64 port) {
        const State& state = packet->state;
        if (fate.session >= 0) clone_ingress(fate, source, port, state);
        if (fate.again) {
            counts.resubmitted++;
            enter_again(DROP_PORT, nullptr, source.shared(), RESUBMITTED, fate.again, state);
        } else if (fate.group) {
            const auto found = groups.find(fate.group);
            if (found == groups.end() || found->second.empty()) return false;
            const Replica last = found->second.back();
            for (size_t i = 0; i + 1 < found->second.size(); i++) {
                const Replica& r = found->second[i];
                enqueue((u64)r.port, make(state, source, fate, REPLICATED, NEVER_TRUNCATED, r.instance), fate.priority);
            }
            fill(packet, source, fate, REPLICATED, NEVER_TRUNCATED, last.instance);
            enqueue((u64)last.port, packet, fate.priority);
            return true;
        } else if (fate.spec == DROP_PORT) {
            counts.ingress_drops++;
        } else if (!queues.limited && !held && !waiting) {
            packet->port = fate.spec, packet->depth = 0;
            egress(describe(packet, source, fate, NORMAL, fate.cut, -1), source, 0);
            return true;
        } else {
            enqueue(fate.spec, fill(packet, source, fate, NORMAL, fate.cut, -1), fate.priority);
            return true;
        }
        return false;
    }
    void clone_ingress(const Fate& fate, Source& source, u64 port, const State& state) {
        const auto found = sessions.find((u64)fate.session);
        if (found == sessions.end() || !Program::has_reparse) return;
        State cloned;
        Fate parsed;
        program.reparse(source.data, (i64)source.length, port, parsed, cloned);
        Program::clone(fate.clone_list, state, cloned);
        parsed.length = (i64)source.length;
        replicate(found->second, cloned, source, parsed, INGRESS_CLONE, (i64)source.length);
    }
    void replicate(const Session& session, const State& state, Source& source, const Fate& fate, i64 type,
                   i64 arrived) {
        const i64 cut = session.length ? session.length : NEVER_TRUNCATED;
        for (const Replica& r : session.replicas) {
            Packet* packet = make(state, source, fate, type, cut, r.instance);
            packet->arrived = arrived;
            enqueue((u64)r.port, packet, 0);
        }
    }

    // Takes over the packet; its frame is that of the source.
    void egress(Packet* packet, Source& source, i64 left) {
        Fate fate;
        State& state = packet->state;
        const u64 port = packet->port;
        Frame* const out = frames.take(Program::header_bytes + source.length + 64);
        program.egress(state, source.data, (i64)source.length, packet->pos, port, packet->instance, packet->type,
                       packet->length, packet->cut, packet->arrived, micros(), packet->since, packet->depth, left,
                       out->data, fate);
        if (fate.session >= 0) {
            const auto found = sessions.find((u64)fate.session);
            if (found != sessions.end()) {
                State cloned = state;
                Program::clone(fate.clone_list, state, cloned);
                Fate copy;
                copy.pos = packet->pos, copy.length = fate.length;
                replicate(found->second, cloned, source, copy, EGRESS_CLONE, packet->arrived);
            }
            waiting = true;
        }
        if (fate.stays && fate.out >= 0) {
            counts.recirculated++;
            frames.release(out);
            packet->frame = source.shared();
            enter_again(port, packet, packet->frame, RECIRCULATED, fate.again, state);
            return;
        }
        if (fate.out < 0) {
            counts.egress_drops++;
        } else if (fate.again) {
            counts.recirculated++;
            out->length = (u32)fate.out;
            out->users++;
            enter_again(port, nullptr, out, RECIRCULATED, fate.again, state);
        } else {
            transmit(port, out->data, (size_t)std::clamp<i64>(fate.cut, 0, fate.out));
        }
        frames.release(out);
        spare.push_back(packet);
    }

    void drain() {
        while (Packet* p = queues.pop(line_clock())) {
            Source source(frames, p->frame);
            egress(p, source, queues.lengths[p->port][p->of_class]);
        }
        waiting = false;
    }
    void run_again(size_t limit) {
        while (!again.empty() && limit--) {
            const Again item = again.take();
            Source source(frames, item.frame);
            Packet* const packet = item.packet ? item.packet : fresh();
            if (item.packet) Program::renew(packet->state);
            else packet->state = State();
            pass(packet, item.packet ? packet->pos : -1, source, 0, item.type, &item.kept);
        }
    }

    void transmit(u64 number, const u8* data, size_t length) {
        Port& port = ports[number];
        if (port.kind == NONE) {
            counts.unattached[number]++;
            return;
        }
        if (port.kind == CONTROLLER || port.kind == CAPTURED) {
            if (port.kind == CAPTURED) captured.push_back({(int)number, std::string((const char*)data, length)});
            else if (!notify(std::string((const char*)data, length))) {
                counts.send_errors[number]++;
                return;
            }
            counts.sent[number]++;
            queues.charge((int)number, length);
            return;
        }
        port.departures.add(data, length);
        port.last_bytes = length;
        const bool alone = port.leaves_alone();
        // Each frame is charged before the next may leave; one that may be refused once it has left.
        if (!alone) queues.charge((int)number, length);
        const size_t frames = port.departures.waiting();
        if (port.held) return;
        if (alone || frames >= BATCH) flush((int)number);
        else if (frames == 1) to_flush.push_back((int)number);
    }
    void flush(int number) {
        Port& port = ports[number];
        const u64 before = counts.sent[number];
        const bool alone = port.leaves_alone();
        const bool taken = port.departures.send(port.fd, counts.sent[number], counts.send_errors[number]);
        const i64 done = (i64)(counts.sent[number] - before);
        count_queued(number, taken ? 0 : (i64)port.departures.waiting() - 1);
        if (taken) {
            port.careful = port.careful > done ? port.careful - (int)done : 0;
            if (done && alone) queues.charge(number, port.last_bytes);
            return;
        }
        port.careful = CAREFUL_FRAMES;
        if (!port.held) {
            port.held = true;
            held++;
        }
        queues.block(number);
    }
    void count_queued(int number, i64 frames) {
        queues.lengths[number][0] += frames - ports[number].queued;
        ports[number].queued = frames;
    }
    void flush_all() {
        for (const int number : to_flush)
            if (!ports[number].held) flush(number);
        to_flush.clear();
    }
    void writable(int number) {
        Port& port = ports[number];
        if (!port.held) return;
        queues.unblock(number, clock());
        flush(number);
        if (port.departures.waiting()) return;
        port.held = false;
        held--;
        waiting = true;
        drain();
    }

    bool notify(std::string frame) {
        {
            std::lock_guard<std::mutex> lock(notice_mutex);
            if (notices.size() >= NOTICES) return false;
            notices.push_back(std::move(frame));
        }
        notice_come.notify_one();
        return true;
    }

    // The loop. Other threads enter the switch between two turns.
    void enter() {
        callers++;
        mutex.lock();
        callers--;
    }
    // The loop computed its timeout before the caller entered. Woken before the caller leaves, it
    // could do so again, and wait forever.
    void leave() {
        rouse();
        mutex.unlock();
    }
    void rouse() {
        const u64 one = 1;
        if (write(wake, &one, sizeof one) < 0) {}
    }

    void run() {
        epoll_event events[64];
        mutex.lock();
        while (!stopping) {
            const double due = next_turn();
            mutex.unlock();
            while (callers > 0 && !stopping) sched_yield();
            int count = wait(events, due);
            mutex.lock();
            for (int i = 0; i < count; i++) {
                if (events[i].data.u32 == WAKE) {
                    u64 value;
                    if (read(wake, &value, sizeof value) < 0) {}
                } else {
                    serve((int)events[i].data.u32, events[i].events);
                }
            }
            run_again(AGAIN_PER_TURN);
            if (waiting || queues.limited) drain();
            flush_all();
            watch();
        }
        stopping = false;
        mutex.unlock();
    }
    // Seconds until a queued packet may leave; negative: never.
    double next_turn() {
        if (!again.empty() || waiting) return 0;
        if (!queues.limited) return -1;
        const double due = queues.next_time();
        return due < 0 ? -1 : std::max(0.0, due - clock());
    }
    int wait(epoll_event* events, double seconds) {
        if (seconds > 0) {
            // Epoll counts milliseconds, in which a line sends many frames.
            pollfd one = {epoll, POLLIN, 0};
            timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
            ppoll(&one, 1, &time, nullptr);
            seconds = 0;
        }
        return epoll_wait(epoll, events, 64, seconds < 0 ? -1 : 0);
    }
    void watch() {
        if (!held && !watching) return;
        watching = false;
        for (int i = 0; i < PORTS; i++) {
            Port& port = ports[i];
            if (port.held != port.watched) {
                listen(EPOLL_CTL_MOD, port.fd, port.held ? EPOLLIN | EPOLLOUT : EPOLLIN, (u32)i);
                port.watched = port.held;
            }
            watching |= port.watched;
        }
    }
    bool watching = false;

    void serve(int number, u32 events) {
        if (events & EPOLLOUT) writable(number);
        if (!(events & ~(u32)EPOLLOUT)) return;
        Port& port = ports[number];
        const int count = arrivals.receive(port.fd, port.frame_bytes, port.beside);
        for (int i = 0; i < count; i++) {
            if (port.beside == SEGMENTS) {
                receive_segments(number, i);
                continue;
            }
            size_t length;
            const u8* frame = arrivals.whole(i, length);
            receive_next(number, frame, length);
        }
    }
    void receive_segments(int number, int message) {
        const size_t end = arrivals.headers[message].msg_len, segment = arrivals.segment(message);
        size_t at = 0;
        do {
            const size_t length = end - at < segment ? end - at : segment;
            receive_next(number, arrivals.frame(message) + at, length);
            at += length;
        } while (at < end);
    }
    // Recirculated packets go first, within a limit: they may never end.
    void receive_next(int number, const u8* frame, size_t length) {
        if (!again.empty()) run_again(AGAIN_PER_TURN);
        receive(number, frame, length);
    }
    void stop() {
        stopping = true;
        rouse();
    }
};
