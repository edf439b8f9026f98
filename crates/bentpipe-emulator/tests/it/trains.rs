//! The kernel's TCP and UDP through the emulator, in trains that lose packets.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration as StdDuration;

use bentpipe_emulator::{HostId, Lab, Tap, Traffic};
use bentpipe_engine::units::Duration;
use bentpipe_engine::wire::checksum::Checksum;
use bentpipe_io::Namespace as Host;
use bentpipe_study::scenario::Scenario;
use quinn_udp::{Transmit, UdpSocketState};

use crate::namespace::Namespace;
use crate::talk::{DATA, Hash, hash, take};

/// The names of hosts contain the process ID, so a process has one lab at a time.
static ONE: Mutex<()> = Mutex::new(());

/// Rates of the two links: packets of 1500 bytes are 6 us apart.
const USUAL: [&str; 2] = ["4 Gbit/s", "2 Gbit/s"];
/// A train of 20 datagrams passes within half a microsecond, which is less than one iteration of the loop.
const AT_ONCE: [&str; 2] = ["400 Gbit/s", "400 Gbit/s"];

fn scenario([near, far]: [&str; 2], link: &str) -> Scenario {
    let text = format!(
        "name = \"test\"\n[[links]]\nname = \"near\"\nbetween = [\"A\", \"R\"]\nrate = \"{near}\"\ndelay = \"1 ms\"\n\
         queue = \"1 s\"\n[[links]]\nname = \"far\"\nbetween = [\"R\", \"B\"]\nrate = \"{far}\"\ndelay = \"1 ms\"\n\
         queue = \"1 s\"\n{link}\n[[flows]]\nname = \"data\"\nfrom = \"A\"\nto = \"B\"\nbytes = \"1 MB\"\n"
    );
    Scenario::parse(&text, "test.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

fn lab(rates: [&str; 2], link: &str, routers: &[&str]) -> Option<(MutexGuard<'static, ()>, Lab)> {
    Namespace::new()?;
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let scenario = scenario(rates, link);
    let routers: Vec<_> = routers.iter().map(|name| scenario.node(name).expect("a node")).collect();
    Some((one, Lab::build(&scenario, &routers).expect("root may")))
}

/// Runs the links until `work`, in another thread, is done.
fn meanwhile<T: Send>(lab: &mut Lab, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let work = scope.spawn(work);
        let emulator = lab.emulator_mut();
        while !work.is_finished() {
            let until = emulator.clock().now() + Duration::from_millis(10);
            emulator.turn(Some(until)).expect("the devices are there");
        }
        work.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn ends(lab: &Lab) -> [(Host, [IpAddr; 2]); 2] {
    ["A", "B"].map(|name| {
        let host = lab.hosts().iter().find(|host| host.name == name).expect("a host");
        let v6 = host.v6.expect("the MTU allows it");
        (Host::named(&host.namespace).expect("it is there"), [host.v4.into(), v6.into()])
    })
}

/// Sends everything and receives it back. Returns the hash of what came back.
fn there_and_back(near: &Host, far: &Host, address: IpAddr, times: usize) -> (Hash, Hash) {
    let listener = far.inside(|| TcpListener::bind((address, 0))).expect("a free port");
    let to = listener.local_addr().expect("bound");
    std::thread::scope(|scope| {
        let echo = scope.spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut all = Vec::new();
            stream.read_to_end(&mut all).expect("data");
            stream.write_all(&all).expect("it is taken");
            hash(&all)
        });
        let mut stream = near.inside(|| TcpStream::connect(to)).expect("a route");
        (0..times).for_each(|_| stream.write_all(&DATA).expect("it is taken"));
        stream.shutdown(std::net::Shutdown::Write).expect("it is open");
        let back = take(&mut stream);
        (echo.join().expect("no panic"), back)
    })
}

/// 50 MB in each direction, over IPv4 and IPv6, and once more through the kernel of a router, which forwards each train.
#[test]
fn streams_are_whole_where_packets_of_trains_are_lost() {
    for routers in [&[][..], &["R"]] {
        let Some((_one, mut lab)) = lab(USUAL, "loss = \"0.1 %\"", routers) else { return };
        let [(near, _), (far, addresses)] = ends(&lab);
        let whole = hash(&DATA.repeat(5));
        for address in addresses {
            let (there, back) = meanwhile(&mut lab, || there_and_back(&near, &far, address, 5));
            assert!(there == whole, "{address}: SHA-256 of what came");
            assert!(back == whole, "{address}: SHA-256 of what came back");
        }
        let emulator = lab.emulator();
        let traffic = emulator.traffic();
        println!("{routers:?}: {traffic:?}");
        // Two times 100 MB in packets of at most 1448 bytes, on one lossy link.
        let lost: u64 = emulator.counters().iter().map(|link| link.dropped_channel).sum();
        assert!((80..400).contains(&lost), "{lost} packets are lost: 138 000 at 0.1 %, and acknowledgements");
        assert_eq!(emulator.refused(), 0, "hosts take every train");
        // One by one there would be as many writes as packets. The length of a train depends on how soon the emulator wakes up: 1.3 packets
        // per write on a fast machine, 1.9 and 2.4 on a slower one, idle and busy. In the datagram test below, all packets of a train are
        // due at once.
        assert!(traffic.writes * 10 < traffic.arrived * 9, "trains go out: {traffic:?}");
        // Hosts send at least three packets at a time. Half of what a router's path carries comes from the router, in trains as long as
        // those written to it, of 10/9 packets at least: 1/2 / 3 + 1/2 * 9/10 = 0.62 reads per packet.
        let [reads, packets] = if routers.is_empty() { [1, 3] } else { [62, 100] };
        assert!(traffic.reads * packets < traffic.sent * reads, "trains come in: {traffic:?}");
    }
}

/// The packets of a capture (pcapng: enhanced packet blocks are of type 6).
fn captured(bytes: &[u8]) -> Vec<&[u8]> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
    let (mut at, mut packets) = (0, Vec::new());
    while at < bytes.len() {
        if word(at) == 6 {
            packets.push(&bytes[at + 28..at + 28 + word(at + 20)]);
        }
        at += word(at + 4);
    }
    packets
}

/// In a capture, packets of trains look as on a wire: separate, each with its checksum.
#[test]
fn captures_have_whole_packets() {
    let Some((_one, mut lab)) = lab(USUAL, "", &[]) else { return };
    let folder = tempfile::tempdir().expect("room");
    let path = folder.path().join("all.pcapng");
    let clock = lab.emulator().clock();
    lab.emulator_mut().tap(Tap::create(&path, &[(HostId(0), "A"), (HostId(1), "B")], "test", clock).expect("room"));
    let [(near, _), (far, addresses)] = ends(&lab);
    for address in addresses {
        meanwhile(&mut lab, || there_and_back(&near, &far, address, 1));
    }
    lab.emulator_mut().take_tap().expect("it was there").finish().expect("room");
    let traffic = lab.emulator().traffic();
    let bytes = std::fs::read(&path).expect("it is there");
    let packets = captured(&bytes);
    assert_eq!(packets.len() as u64, traffic.sent + traffic.arrived);
    assert!(traffic.reads * 3 < traffic.sent, "trains come in: {traffic:?}");
    let mut checked = 0;
    for packet in packets {
        assert!(packet.len() <= 1500, "{} B", packet.len());
        let (addresses, protocol, start) = if packet[0] >> 4 == 4 {
            assert_eq!(Checksum::new().bytes(&packet[..20]).finish(), 0, "IPv4's checksum");
            (12..20, packet[9], 20)
        } else {
            (8..40, packet[6], 40)
        };
        if protocol == 6 {
            let transport = &packet[start..];
            let pseudo = Checksum::new().bytes(&packet[addresses]).word(6).word(transport.len() as u16);
            assert_eq!(pseudo.bytes(transport).finish(), 0, "TCP's checksum");
            checked += 1;
        }
    }
    // 40 MB, each packet seen twice.
    assert!(checked > 2 * 27_600, "{checked}");
}

/// Datagrams sent as trains (UDP_SEGMENT): each that is not lost arrives separately and in order.
#[test]
fn datagrams_of_trains_come_by_themselves() {
    let Some((_one, mut lab)) = lab(AT_ONCE, "forward.drop_list = [0, 5, 6, 199]", &[]) else { return };
    let [(near, from), (far, to)] = ends(&lab);
    for (version, (from, to)) in from.into_iter().zip(to).enumerate() {
        let bind = |address| move || UdpSocket::bind((address, 0));
        let (near, far) = (near.inside(bind(from)).expect("a port"), far.inside(bind(to)).expect("a port"));
        far.set_read_timeout(Some(StdDuration::from_secs(5))).expect("a time");
        let address = far.local_addr().expect("bound");
        let state = UdpSocketState::new((&near).into()).expect("a socket");
        if state.max_gso_segments() < 20 {
            eprintln!("SKIPPED, not tested: this kernel takes no trains of datagrams");
            return;
        }
        let before = lab.emulator().traffic();
        // The list counts packets from the start, which belong to the first socket.
        let is_lost = |n: &u32| version == 0 && [0, 5, 6, 199].contains(n);
        meanwhile(&mut lab, || {
            let mut buffer = [0; 2000];
            // One train after the other, since a socket has no room for all of them.
            for train in 0..10 {
                let numbers = train * 20..train * 20 + 20_u32;
                let contents: Vec<u8> = numbers.clone().flat_map(|n| n.to_be_bytes().repeat(250)).collect();
                let (destination, segment_size) = (address, Some(1000));
                let transmit = Transmit { destination, ecn: None, contents: &contents, segment_size, src_ip: None };
                state.try_send((&near).into(), &transmit).expect("a route");
                for number in numbers.filter(|number| !is_lost(number)) {
                    let length = far.recv(&mut buffer).expect("it comes");
                    assert_eq!(buffer[..length], number.to_be_bytes().repeat(250), "{number}");
                }
            }
        });
        let after = lab.emulator().traffic();
        assert!(after.reads - before.reads < 30, "trains come in: {before:?}, {after:?}");
        // Packets due together leave together: ten trains, some of which gaps split in two.
        assert!(after.writes - before.writes < 30, "trains go out: {before:?}, {after:?}");
        assert_eq!(lab.emulator().refused(), 0, "hosts take every train");
    }
}

/// A host that no link leads to is none: datagrams to it are foreign and nothing else.
#[test]
fn what_has_no_path_is_counted_once() {
    let Some((_one, mut lab)) =
        lab(USUAL, "[[links]]\nname = \"other\"\nbetween = [\"C\", \"D\"]\nrate = \"1 Gbit/s\"\ndelay = \"1 ms\"", &[])
    else {
        return;
    };
    let address = |name: &str| lab.hosts().iter().find(|host| host.name == name).expect("a host").v4;
    let (from, to) = (address("A"), address("C"));
    let [(near, _), _] = ends(&lab);
    let socket = near.inside(|| UdpSocket::bind((from, 0))).expect("a port");
    meanwhile(&mut lab, || {
        for _ in 0..10 {
            socket.send_to(&[7; 100], (to, 9)).expect("a route");
        }
        std::thread::sleep(StdDuration::from_millis(50));
    });
    let traffic = lab.emulator().traffic();
    assert_eq!(traffic.sent, 0, "{traffic:?}");
    // Beside what kernels announce.
    assert!(traffic.foreign >= 10, "{traffic:?}");
}

/// The devices stay, and what they had counted was reported as that of the links that began.
#[test]
fn links_that_start_again_count_from_zero() {
    let Some((_one, mut lab)) = lab(USUAL, "", &[]) else { return };
    let [(near, _), (_, [far, _])] = ends(&lab);
    let socket = near.inside(|| UdpSocket::bind("0.0.0.0:0")).expect("ports are left");
    socket.send_to(&[7; 100], (far, 9)).expect("there is a route");
    while lab.emulator().traffic().writes == 0 {
        lab.emulator_mut().turn(None).expect("the devices are there");
    }
    lab.restart(&scenario(USUAL, "")).expect("descriptors are left");
    assert_eq!((lab.emulator().traffic(), lab.emulator().refused()), (Traffic::default(), 0));
}
