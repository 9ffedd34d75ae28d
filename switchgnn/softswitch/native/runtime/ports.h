// Ports, which are sockets opened by Python with whole batches of frames per system call, and the
// egress queues in front of them.
#pragma once

#include "wide.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <queue>
#include <string>
#include <sys/socket.h>
#include <sys/uio.h>
#include <utility>
#include <vector>

enum PortKind { NONE, SOCKET, PACKET_SOCKET, CONTROLLER, CAPTURED };

constexpr int BATCH = 32;
constexpr size_t FRAME_ROOM = 65536 + 64;

// struct tpacket_auxdata of linux/if_packet.h.
struct AuxData {
    u32 status, length, caught;
    u16 mac, net, tag, protocol;
};
constexpr int LEVEL_PACKET = 263, PACKET_AUX = 8;
constexpr int LEVEL_UDP = 17, UDP_SEGMENT_SIZE = 103, UDP_WHOLE = 104;
constexpr size_t MOST_SEGMENTS = 64, LONGEST_MESSAGE = 65000;
constexpr u32 TAG_VALID = 1 << 4, TAG_PROTOCOL_VALID = 1 << 6;

// The ancillary data of received messages.
enum Beside { NOTHING, TAGS, SEGMENTS };

// The messages of one recvmmsg call.
struct Arrivals {
    std::vector<u8> room;
    mmsghdr headers[BATCH];
    iovec places[BATCH];
    alignas(8) u8 aux[BATCH][CMSG_SPACE(sizeof(AuxData))];

    Arrivals() : room(BATCH * FRAME_ROOM) {}

    // Leaves four bytes before each frame for a VLAN tag.
    u8* frame(int i) { return room.data() + (size_t)i * FRAME_ROOM + 4; }

    int receive(int fd, size_t frame_bytes, Beside beside) {
        for (int i = 0; i < BATCH; i++) {
            places[i] = {frame(i), beside == SEGMENTS ? FRAME_ROOM - 4 : frame_bytes};
            headers[i] = {};
            headers[i].msg_hdr.msg_iov = &places[i];
            headers[i].msg_hdr.msg_iovlen = 1;
            if (beside) {
                headers[i].msg_hdr.msg_control = aux[i];
                headers[i].msg_hdr.msg_controllen = sizeof aux[i];
            }
        }
        return recvmmsg(fd, headers, BATCH, MSG_DONTWAIT, nullptr);
    }

    // The length of all frames in a message but the last, which may be shorter.
    size_t segment(int i) {
        const size_t length = headers[i].msg_len;
        const cmsghdr* c = CMSG_FIRSTHDR(&headers[i].msg_hdr);
        if (!c || c->cmsg_level != LEVEL_UDP || c->cmsg_type != UDP_WHOLE) return length;
        int size;
        memcpy(&size, CMSG_DATA(c), sizeof size);
        return size > 0 && (size_t)size < length ? (size_t)size : length;
    }

    // Puts a VLAN tag back, which the kernel delivers separately.
    u8* whole(int i, size_t& length) {
        u8* at = frame(i);
        length = headers[i].msg_len;
        const cmsghdr* c = CMSG_FIRSTHDR(&headers[i].msg_hdr);
        if (!c || c->cmsg_level != LEVEL_PACKET || c->cmsg_type != PACKET_AUX || length < 12) return at;
        AuxData data;
        memcpy(&data, CMSG_DATA(c), sizeof data);
        if (!(data.status & TAG_VALID)) return at;
        const u16 protocol = data.status & TAG_PROTOCOL_VALID ? data.protocol : 0x8100;
        memmove(at - 4, at, 12);
        const u8 tag[4] = {(u8)(protocol >> 8), (u8)protocol, (u8)(data.tag >> 8), (u8)data.tag};
        memcpy(at + 8, tag, 4);
        length += 4;
        return at - 4;
    }
};

// The frames to send through a port with the next call.
struct Departures {
    std::vector<u8> room;
    std::vector<size_t> ends;  // of each frame in the room
    size_t first = 0;          // frame that has not been sent
    bool cuts = false;         // whether the kernel can segment messages

    size_t waiting() const { return ends.size() - first; }
    void add(const u8* frame, size_t length) {
        const size_t end = ends.empty() ? 0 : ends.back();
        if (room.size() < end + length) room.resize((end + length) * 2);
        memcpy(room.data() + end, frame, length);
        ends.push_back(end + length);
    }
    size_t begin(size_t i) const { return i ? ends[i - 1] : 0; }
    size_t size(size_t i) const { return ends[i] - begin(i); }

    // The number of frames that leave as one message, which the kernel segments into datagrams:
    // frames of one length, except that the last may be shorter.
    size_t run(size_t from, size_t end) const {
        size_t to = from + 1;
        if (!cuts || size(from) == 0) return 1;
        while (to < end && to - from < MOST_SEGMENTS && size(to) == size(from)) to++;
        if (to < end && to - from < MOST_SEGMENTS && size(to) && size(to) < size(from)) to++;
        while (ends[to - 1] - begin(from) > LONGEST_MESSAGE && to > from + 1) to--;
        return to - from;
    }

    // Sends all frames (true) or until the port refuses one (false).
    bool send(int fd, u64& sent, u64& errors) {
        mmsghdr headers[BATCH];
        iovec places[BATCH];
        size_t runs[BATCH];
        alignas(8) u8 segments[BATCH][CMSG_SPACE(sizeof(u16))];
        while (waiting()) {
            const size_t end = first + (waiting() < BATCH ? waiting() : BATCH);
            unsigned count = 0;
            for (size_t i = first; i < end; i += runs[count++]) {
                runs[count] = run(i, end);
                places[count] = {room.data() + begin(i), ends[i + runs[count] - 1] - begin(i)};
                headers[count] = {};
                headers[count].msg_hdr.msg_iov = &places[count];
                headers[count].msg_hdr.msg_iovlen = 1;
                if (runs[count] > 1) cut(headers[count].msg_hdr, segments[count], (u16)size(i));
            }
            const int done = sendmmsg(fd, headers, count, MSG_DONTWAIT);
            if (done > 0) {
                for (int i = 0; i < done; i++) sent += runs[i], first += runs[i];
            } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
                return false;
            } else if (runs[0] > 1 && cannot_cut()) {
                cuts = false;
            } else if (errno != EINTR) {
                errors++;
                first++;
            }
        }
        ends.clear();
        first = 0;
        return true;
    }
    // https://man7.org/linux/man-pages/man7/udp.7.html (UDP_SEGMENT)
    static void cut(msghdr& message, u8* room, u16 size) {
        message.msg_control = room;
        message.msg_controllen = CMSG_SPACE(sizeof size);
        cmsghdr* c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = LEVEL_UDP;
        c->cmsg_type = UDP_SEGMENT_SIZE;
        c->cmsg_len = CMSG_LEN(sizeof size);
        memcpy(CMSG_DATA(c), &size, sizeof size);
    }
    // Other sockets ignore UDP_SEGMENT and would send one long message.
    static bool is_udp(int fd) {
        int protocol = 0;
        socklen_t size = sizeof protocol;
        return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 && protocol == LEVEL_UDP;
    }
    static bool cannot_cut() {
        return errno == EINVAL || errno == EIO || errno == EMSGSIZE || errno == ENOPROTOOPT || errno == EOPNOTSUPP;
    }
};

// Receives segmented messages whole, where the kernel can:
// https://man7.org/linux/man-pages/man7/udp.7.html (UDP_GRO)
static inline bool arrive_whole(int fd) {
    const int on = 1;
    return Departures::is_udp(fd) && setsockopt(fd, LEVEL_UDP, UDP_WHOLE, &on, sizeof on) == 0;
}

struct Port {
    PortKind kind = NONE;
    Beside beside = NOTHING;
    int fd = -1;
    size_t frame_bytes = 0;
    Departures departures;
    // A port that may refuse frames gets one at a time, so that others wait in the queue whose depth
    // the program reads; so does, for `careful` frames, a port that refused one unexpectedly.
    bool may_refuse = false;
    int careful = 0;
    bool leaves_alone() const { return may_refuse || careful; }
    // The frames after the first refused one, which count as queued.
    i64 queued = 0;
    size_t last_bytes = 0;
    bool held = false;
    bool watched = false;
};

constexpr int PORTS = 512;  // nine bits; programs with more are refused

constexpr int CLASSES = 8;  // three bits

// A queue in a ring of a power of two of places, which grows.
template <class X> struct Fifo {
    std::vector<X> ring;
    size_t first = 0, count = 0;

    bool empty() const { return count == 0; }
    size_t size() const { return count; }
    X& at(size_t i) { return ring[(first + i) & (ring.size() - 1)]; }
    // A place at the end, with what was there before.
    X& add() {
        if (count == ring.size()) {
            std::vector<X> wider(count ? 2 * count : 16);
            for (size_t i = 0; i < count; i++) wider[i] = at(i);
            wider.swap(ring);
            first = 0;
        }
        return at(count++);
    }
    void push_back(const X& x) { add() = x; }
    X take() {
        const X x = at(0);
        first = (first + 1) & (ring.size() - 1);
        count--;
        return x;
    }
    void clear() { first = count = 0; }
};

// A bounded queue for each port. Ports with packets take turns, one packet each.
template <class X> struct RoundRobin {
    static constexpr size_t DEPTH = 256;
    Fifo<X> queues[PORTS];
    Fifo<u64> turns;  // the ports with packets, the next one first

    bool empty() const { return turns.empty(); }
    // A place at the end of a port's queue, with what was there before; null: the queue is full.
    X* add(u64 port) {
        Fifo<X>& queue = queues[port];
        if (queue.size() == DEPTH) return nullptr;
        if (queue.empty()) turns.push_back(port);
        return &queue.add();
    }
    X take() {
        const u64 port = turns.take();
        Fifo<X>& queue = queues[port];
        const X item = queue.take();
        if (!queue.empty()) turns.push_back(port);
        return item;
    }
};

// Egress queues: a depth per port and class with tail drop, and optional speed limits; see ports.py.
template <class Packet> struct Queues {
    // A class may save up its share of a long frame, and some bytes.
    static constexpr double SAVED = 350, LONG_FRAME = 1500, AHEAD = 0.001;
    struct PortLine {
        Fifo<Packet*> classes[CLASSES];
        const double* const shares;
        double credits[CLASSES];
        u64 count = 0;
        int last = 0;        // of the last popped packet: its class,
        bool ahead = false;  // and whether it went ahead of others
        double free_at = 0, begin = 0, interval = 0, byte_time = 0;
        bool listed = false, blocked = false;

        explicit PortLine(const double* shares) : shares(shares) {
            for (int i = 0; i < CLASSES; i++) credits[i] = most(i);
        }
        double most(int i) const { return SAVED + shares[i] * LONG_FRAME; }
        void push(Packet* packet) {
            classes[packet->of_class].push_back(packet);
            count++;
        }
        Packet* pop() {
            int lowest = 0;
            while (classes[lowest].empty()) lowest++;
            last = CLASSES - 1;
            while (last > lowest && (classes[last].empty() || credits[last] <= 0)) last--;
            ahead = last > lowest;
            count--;
            return classes[last].take();
        }
        void charge(size_t size) {
            const double end = begin + (double)size * byte_time;
            if (free_at < end) free_at = end;
            if (ahead) credits[last] -= (double)size;
            for (int i = last + 1; i < CLASSES; i++)
                credits[i] = std::min(credits[i] + shares[i] * (double)size, most(i));
        }
    };
    i64 depth = 64;  // of a class
    double shares[CLASSES] = {};
    double bandwidth = 0, rates[PORTS] = {};  // 0: no limit
    bool limited = false;  // whether any port is
    bool attached[PORTS] = {};
    u64 tail_drops[PORTS] = {};
    i64 lengths[PORTS][CLASSES] = {};
    bool has_lines = false;
    Fifo<Packet*> ready;
    PortLine* lines[PORTS] = {};
    Fifo<int> turns;
    typedef std::pair<double, int> Due;
    std::priority_queue<Due, std::vector<Due>, std::greater<Due>> timed;

    // False: the queue was full, and the packet is counted as dropped.
    bool push(int port, Packet* packet, double now) {
        i64& length = lengths[port][packet->of_class];
        if (length >= depth) {
            tail_drops[port]++;
            return false;
        }
        packet->depth = length++;
        PortLine* line = has_lines ? line_of(port) : nullptr;
        if (!line) {
            ready.push_back(packet);
            return true;
        }
        if (!line->count && line->free_at < now) line->free_at = now;
        line->push(packet);
        list(port);
        return true;
    }
    PortLine* line_of(int port) {
        if (lines[port]) return lines[port];
        const double rate = rates[port], bits = attached[port] ? bandwidth : 0;
        if (rate == 0 && bits == 0) return nullptr;
        lines[port] = new PortLine(shares);
        lines[port]->interval = rate ? 1.0 / rate : 0;
        lines[port]->byte_time = bits ? 8.0 / bits : 0;
        return lines[port];
    }
    void list(int port) {
        PortLine* line = lines[port];
        if (line->count && !line->listed && !line->blocked) {
            line->listed = true;
            turns.push_back(port);
        }
    }
    Packet* pop(double now) {
        Packet* const packet = ready.empty() ? pop_line(now) : ready.take();
        if (packet) lengths[packet->port][packet->of_class]--;
        return packet;
    }
    Packet* pop_line(double now) {
        while (!timed.empty() && timed.top().first <= now) {
            turns.push_back(timed.top().second);
            timed.pop();
        }
        while (!turns.empty()) {
            const int port = turns.take();
            PortLine* line = lines[port];
            if (line->blocked) {
                line->listed = false;
                continue;
            }
            if (line->free_at > now + AHEAD) {
                timed.push({line->free_at, port});
                continue;
            }
            line->begin = line->free_at;
            line->free_at += line->interval;
            Packet* packet = line->pop();
            if (!line->count) line->listed = false;
            else turns.push_back(port);
            return packet;
        }
        return nullptr;
    }
    void charge(int port, size_t size) {
        if (lines[port]) lines[port]->charge(size);
    }
    void block(int port) {
        PortLine* line = lines[port];
        if (!line) {
            line = lines[port] = new PortLine(shares);
            has_lines = true;
            for (size_t left = ready.size(); left--;) {
                Packet* const packet = ready.take();
                if ((int)packet->port == port) line->push(packet);
                else ready.push_back(packet);
            }
        }
        line->blocked = true;
    }
    void unblock(int port, double now) {
        PortLine* line = lines[port];
        if (!line) return;
        line->blocked = false;
        if (line->begin < now) line->begin = now;
        if (line->free_at < now) line->free_at = now;
        list(port);
    }
    // When the next packet may leave; negative: never.
    double next_time() const {
        if (!ready.empty() || !turns.empty()) return 0;
        return timed.empty() ? -1 : timed.top().first;
    }
    template <class Drop> void clear(Drop drop) {
        while (!ready.empty()) drop(ready.take());
        for (PortLine*& line : lines) {
            if (!line) continue;
            for (auto& each : line->classes)
                while (!each.empty()) drop(each.take());
            delete line;
            line = nullptr;
        }
        turns.clear();
        timed = {};
        memset(lengths, 0, sizeof lengths);
        has_lines = limited;
    }
};
