"""The path of scenarios/geo.toml in ns-3, by the wheel of PyPI: pip install ns3; python validation/ns3/geo.py [BYTES...]

Prints the time of the transfer, and the processor's time of the run alone: not that of the import, which compiles ns-3's headers. The TCP
is ns-3's NewReno with SACK, an initial window of 10 segments of 1460 B and delayed ACKs, as `bentpipe run geo` has it.
"""

import sys
import time

from ns import ns

SEGMENT = 1460
# Of geo.toml: rate, delay, packets that may wait. The queue holds 600 ms of 20 Mbit/s in packets of 1500 B.
LINKS = [("1Gbps", "20ms", 100_000), ("20Mbps", "279ms", 1000), ("1Gbps", "1ms", 100_000)]


def transfer(count: int) -> tuple[float, float]:
    """Seconds that the transfer takes, and CPU-seconds that the run takes."""
    nodes = ns.NodeContainer()
    nodes.Create(len(LINKS) + 1)
    ns.InternetStackHelper().Install(nodes)
    addresses = ns.Ipv4AddressHelper()
    for at, (rate, delay, packets) in enumerate(LINKS):
        link = ns.PointToPointHelper()
        link.SetDeviceAttribute("DataRate", ns.StringValue(rate))
        link.SetChannelAttribute("Delay", ns.StringValue(delay))
        link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", ns.StringValue(f"{packets}p"))
        devices = link.Install(nodes.Get(at), nodes.Get(at + 1))
        addresses.SetBase(ns.Ipv4Address(f"10.0.{at}.0"), ns.Ipv4Mask("255.255.255.0"))
        last = addresses.Assign(devices)
        # Packets wait in the device's queue alone.
        ns.TrafficControlHelper().Uninstall(devices)
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
    begun = time.process_time()
    # Until the last byte, within 0.1 s: TIME-WAIT would go on for four minutes.
    while received.GetTotalRx() < count:
        ns.Simulator.Stop(ns.Seconds(0.1))
        ns.Simulator.Run()
    took = time.process_time() - begun
    end = ns.Simulator.Now().GetSeconds()
    ns.Simulator.Destroy()
    return end, took


def main() -> None:
    for name, value in {
        "ns3::TcpSocket::SegmentSize": ns.UintegerValue(SEGMENT),
        "ns3::TcpSocket::InitialCwnd": ns.UintegerValue(10),
        "ns3::TcpSocket::DelAckCount": ns.UintegerValue(2),
        # More than the path and its queue hold.
        "ns3::TcpSocket::SndBufSize": ns.UintegerValue(1 << 26),
        "ns3::TcpSocket::RcvBufSize": ns.UintegerValue(1 << 26),
    }.items():
        ns.Config.SetDefault(name, value)
    ns.Config.SetDefault("ns3::TcpL4Protocol::SocketType", ns.TypeIdValue(ns.TcpNewReno.GetTypeId()))
    for count in [int(text) for text in sys.argv[1:]] or [1_000_000, 100_000_000]:
        end, took = transfer(count)
        print(f"{count} B: ends at {end:.3f} s, {took:.4f} s of CPU")


if __name__ == "__main__":
    main()
