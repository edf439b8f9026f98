use super::*;

/// A download to a peer that moves, or whose NAT forgets it: what was on its way is lost, and a round trip later it goes on as before.
#[test]
fn a_download_goes_on_at_another_address() {
    for new in [address(7), SocketAddr::new(address(2).ip(), 4501)] {
        let mut world = World::new();
        world.run(world.after(10), u64::MAX, greedy);
        let before = world.arrived;
        world.run(world.after(10), u64::MAX, greedy);
        let full = world.arrived - before;
        (world.at, world.says, world.longest) = (new, new, Duration::ZERO);
        world.run(world.after(10), u64::MAX, greedy);
        // 0.3 s until it is known, and 0.3 s back; 0.6 s more for the proof; the frames that were lost.
        assert!(world.longest < Duration::from_millis(1500), "{:?}", world.longest);
        assert_eq!(world.ends[0].tunnel().allowance(), u64::MAX);
        let before = world.arrived;
        world.run(world.after(10), u64::MAX, greedy);
        assert!(world.arrived - before > full / 100 * 99, "{} of {full}", world.arrived - before);
        assert_eq!(world.events.map(|events| events.len()), [1, 1]);
        assert_eq!(world.ends[0].stats().black_holes, 0);
    }
}

/// A peer that comes back to an address where it was gets whole datagrams at once, as soon as it is heard from there.
#[test]
fn the_path_back_is_known() {
    let mut world = World::new();
    for new in [2, 7, 2, 8, 7, 2] {
        let is_known = world.bytes_to.contains_key(&address(new));
        (world.at, world.says) = (address(new), address(new));
        let cut = world.ends[0].stats().cut;
        world.run(world.after(10), u64::MAX, greedy);
        assert_eq!(world.ends[0].path_mtu(), 1500);
        assert!(new == 2 || (world.ends[0].stats().cut == cut) == is_known, "{new}");
    }
}

/// A peer directs its download at somebody else. It even knows which frames come there, only not
/// the id of a probe and what a handshake says. It may alternate.
#[test]
fn who_has_not_asked_gets_no_download() {
    for alternates in [false, true] {
        let mut world = World::new();
        world.run(world.after(5), u64::MAX, greedy);
        world.stopped = &[29, 83, 182];
        let victim = address(9);
        for n in 0..200 {
            let at = if alternates && n % 2 == 1 { address(2) } else { victim };
            (world.at, world.says) = (at, at);
            let end = world.now + Duration::from_millis(50);
            world.run(end, u64::MAX, greedy);
        }
        let (to, from) = (world.bytes_to[&victim], world.bytes_from[&victim]);
        // In ten seconds eleven unpaid probes; each may lack up to its own length.
        assert!(from > 1000 && to <= 3 * from + 11 * 29, "{to} bytes for {from}");
        // It is over as soon as the peer says where it is, which it does with its next keepalive: 5 s later at worst. It takes two round
        // trips until data flows at 1.2 MB/s.
        (world.at, world.says, world.stopped) = (address(2), address(2), &[]);
        let before = world.arrived;
        world.run(world.after(9), u64::MAX, greedy);
        assert!(world.arrived - before > 2_000_000, "{}", world.arrived - before);
    }
}
