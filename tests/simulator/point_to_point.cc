// Sends the same frames over a link of the models and over ns-3's own point-to-point device, whose
// queue puts short frames first; each in the event queue of its own simulator. Prints the bytes and
// the picoseconds of each arrival: "BYTES MODEL BYTES DEVICE", line by line.
#include "link.h"

#include "ns3/data-rate.h"
#include "ns3/node.h"
#include "ns3/packet.h"
#include "ns3/point-to-point-channel.h"
#include "ns3/point-to-point-net-device.h"
#include "ns3/queue.h"
#include "ns3/simulator.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <random>
#include <utility>
#include <vector>

using namespace ns3;

namespace {
constexpr uint32_t kFrames = 2'000;
// The device adds a header of PPP.
constexpr uint32_t kPpp = 2;

class Notes : public Receiver {
  public:
    void Receive(const ::Packet& packet, uint32_t, Picoseconds now) override {
        at.emplace_back(FrameBytes(packet), now);
    }

    bool Take(Ptr<NetDevice>, Ptr<const ns3::Packet> packet, uint16_t, const Address&) {
        at.emplace_back(packet->GetSize() + kPpp, Simulator::Now().GetTimeStep());
        return true;
    }

    std::vector<std::pair<uint32_t, Picoseconds>> at;
};

// A frame with numbers is the longest.
class ShortFirst : public Queue<ns3::Packet> {
  public:
    bool Enqueue(Ptr<ns3::Packet> frame) override {
        return DoEnqueue(IsLong(frame) ? GetContainer().end() : FirstLong(), frame);
    }

    Ptr<ns3::Packet> Dequeue() override { return DoDequeue(GetContainer().begin()); }
    Ptr<ns3::Packet> Remove() override { return DoRemove(GetContainer().begin()); }
    Ptr<const ns3::Packet> Peek() const override { return DoPeek(GetContainer().begin()); }

  private:
    static bool IsLong(const Ptr<ns3::Packet>& frame) {
        return frame->GetSize() == FrameBytes(Kind::FEATURE);
    }

    ConstIterator FirstLong() const {
        return std::find_if(GetContainer().begin(), GetContainer().end(), IsLong);
    }
};

Ptr<PointToPointNetDevice> AddDevice(Ptr<PointToPointChannel> channel, uint64_t bits_per_second) {
    auto device = CreateObject<PointToPointNetDevice>();
    auto queue = CreateObject<ShortFirst>();
    queue->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, kFrames));
    device->SetQueue(queue);
    device->SetDataRate(DataRate(bits_per_second));
    device->SetAddress(Mac48Address::Allocate());
    CreateObject<Node>()->AddDevice(device);
    device->Attach(channel);
    return device;
}
}  // namespace

int main(int, char** words) {
    const uint64_t bits_per_second = std::strtoull(words[1], nullptr, 10);
    const Picoseconds delay = std::atoll(words[2]);
    Time::SetResolution(Time::PS);

    Notes model;
    Notes device;
    Trace trace(false);
    LinkOptions options{.bits_per_second = static_cast<double>(bits_per_second), .delay = delay};
    Link link(options, model, 0, nullptr, trace);
    auto channel = CreateObject<PointToPointChannel>();
    channel->SetAttribute("Delay", TimeValue(TimeStep(delay)));
    auto from = AddDevice(channel, bits_per_second);
    auto to = AddDevice(channel, bits_per_second);
    to->SetReceiveCallback(MakeCallback(&Notes::Take, &device));

    std::deque<::Timer> sends;
    std::mt19937 draw(7);
    const Kind kinds[] = {Kind::FEATURE, Kind::ADVANCE, Kind::ACK};
    Picoseconds at = 0;
    for (uint32_t i = 0; i < kFrames; ++i) {
        // Bursts, and pauses in which the queue runs empty.
        at += draw() % 20 ? 0 : draw() % (40 * options.TimeOf(188));
        const Kind kind = kinds[draw() % 3];
        sends.emplace_back([&link, kind](Picoseconds now) { link.Send({.kind = kind}, now); });
        sends.back().SetTo(at);
        Simulator::Schedule(TimeStep(at), [=] {
            from->Send(Create<ns3::Packet>(FrameBytes(kind) - kPpp), to->GetAddress(), 0x0800);
        });
    }
    events.Run();
    Simulator::Run();
    for (uint32_t i = 0; i < kFrames; ++i) {
        for (const auto* notes : {&model, &device}) {
            std::cout << notes->at.at(i).first << " " << notes->at.at(i).second << " ";
        }
        std::cout << "\n";
    }
    Simulator::Destroy();
}
