"""The path of scenarios/geo.toml in ns-3, with PyPI's wheel: pip install ns3; python validation/ns3/geo.py [BYTES...]

Prints the transfer time, the number of dropped packets, and the CPU time of the run. This excludes the import, which compiles ns-3's
headers. The TCP is ns-3's NewReno with SACK, an initial window of 10 segments of 1460 B and delayed ACKs. `--tcp TcpLinuxReno` selects
another control, `--set ns3::TcpSocket::DelAckCount=1` changes a default of ns-3, `--every 1` prints the received data each second, and
`--pcap FILE` captures at the sender.
"""

import argparse
import time

from ns import ns

SEGMENT = 1460
# From geo.toml: rate, delay, max waiting packets. The queue holds 600 ms of 20 Mbit/s in packets of 1500 B.
LINKS = [("1Gbps", "20ms", 100_000), ("20Mbps", "279ms", 1000), ("1Gbps", "1ms", 100_000)]
DEFAULTS = {
    "ns3::TcpSocket::SegmentSize": SEGMENT,
    "ns3::TcpSocket::InitialCwnd": 10,
    "ns3::TcpSocket::DelAckCount": 2,
    # Larger than the path and its queue hold.
    "ns3::TcpSocket::SndBufSize": 1 << 26,
    "ns3::TcpSocket::RcvBufSize": 1 << 26,
}


def transfer(count: int, every: float, pcap: str | None) -> tuple[float, int, float]:
    """Returns the transfer time in seconds, the number of dropped packets, and the CPU time of the run in seconds."""
    nodes = ns.NodeContainer()
    nodes.Create(len(LINKS) + 1)
    ns.InternetStackHelper().Install(nodes)
    addresses = ns.Ipv4AddressHelper()
    queues = []
    for at, (rate, delay, packets) in enumerate(LINKS):
        link = ns.PointToPointHelper()
        link.SetDeviceAttribute("DataRate", ns.StringValue(rate))
        link.SetChannelAttribute("Delay", ns.StringValue(delay))
        # Packets wait only in the device's queue, which drops packets above its limit.
        link.DisableFlowControl()
        link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", ns.StringValue(f"{packets}p"))
        devices = link.Install(nodes.Get(at), nodes.Get(at + 1))
        queues.append(devices.Get(0).GetObject[ns.PointToPointNetDevice]().GetQueue())
        addresses.SetBase(ns.Ipv4Address(f"10.0.{at}.0"), ns.Ipv4Mask("255.255.255.0"))
        last = addresses.Assign(devices)
        if pcap and at == 0:
            link.EnablePcap(pcap, devices.Get(0), True, True)
    ns.Ipv4GlobalRoutingHelper.PopulateRoutingTables()

    port = 80
    source = ns.BulkSendHelper("ns3::TcpSocketFactory", ns.InetSocketAddress(last.GetAddress(1), port).ConvertTo())
    source.SetAttribute("MaxBytes", ns.UintegerValue(count))
    source.SetAttribute("SendSize", ns.UintegerValue(SEGMENT))
    source.Install(nodes.Get(0)).Start(ns.Seconds(0))
    sink = ns.PacketSinkHelper("ns3::TcpSocketFactory", ns.InetSocketAddress(ns.Ipv4Address.GetAny(), port).ConvertTo())
    sinks = sink.Install(nodes.Get(len(LINKS)))
    sinks.Start(ns.Seconds(0))

    received = sinks.Get(0).GetObject[ns.PacketSink]()

    def dropped() -> int:
        return sum(queue.GetTotalDroppedPackets() for queue in queues)

    begun = time.process_time()
    said = every
    # Stops within 0.1 s of the last byte. Otherwise TIME-WAIT would run for four minutes.
    while received.GetTotalRx() < count and ns.Simulator.Now().GetSeconds() < 3600:
        ns.Simulator.Stop(ns.Seconds(0.1))
        ns.Simulator.Run()
        now = ns.Simulator.Now().GetSeconds()
        if every and now >= said - 1e-9:
            print(f"  {now:6.1f} s: {received.GetTotalRx() / 1e6:9.3f} MB have arrived, {dropped()} packets dropped")
            said += every
    took = time.process_time() - begun
    end, lost = ns.Simulator.Now().GetSeconds(), dropped()
    ns.Simulator.Destroy()
    return end, lost, took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("bytes", nargs="*", type=int, default=[1_000_000, 100_000_000])
    parser.add_argument("--tcp", default="TcpNewReno", help="ns-3's congestion control, such as TcpLinuxReno or TcpCubic")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a default of ns-3")
    parser.add_argument("--every", type=float, default=0.0, help="seconds between lines of progress")
    parser.add_argument("--pcap", metavar="FILE", help="a capture at the sender")
    given = parser.parse_args()
    values = {name: str(value) for name, value in DEFAULTS.items()}
    values["ns3::TcpL4Protocol::SocketType"] = f"ns3::{given.tcp}"
    values.update(assignment.split("=", 1) for assignment in given.set)
    for name, value in values.items():
        ns.Config.SetDefault(name, ns.StringValue(value))
    for count in given.bytes:
        end, lost, took = transfer(count, given.every, given.pcap)
        print(f"{count} B: ends at {end:.3f} s, {lost} packets dropped, {took:.4f} s of CPU")


if __name__ == "__main__":
    main()
