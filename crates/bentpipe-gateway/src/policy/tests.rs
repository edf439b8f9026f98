use proptest::prelude::*;

use super::*;

fn to(text: &str) -> SocketAddr {
    text.parse().expect("an address and a port")
}

fn list(texts: &[&str]) -> Vec<Destination> {
    texts.iter().map(|text| text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))).collect()
}

fn policy(allow: &[&str], deny: &[&str]) -> Policy {
    Policy { allow: list(allow), deny: list(deny) }
}

/// Without settings: addresses of no other host are refused, in each form in which they can be written.
#[test]
fn what_is_refused_by_default() {
    let policy = Policy::default();
    for special in [
        "0.0.0.0:80",
        "0.1.2.3:80",
        "127.0.0.1:22",
        "127.255.0.1:22",
        "169.254.169.254:80",
        "224.0.0.1:80",
        "239.255.255.255:80",
        "255.255.255.255:80",
        "[::]:80",
        "[::1]:22",
        "[fe80::1]:22",
        "[febf::1]:22",
        "[ff02::1]:80",
        "[::ffff:127.0.0.1]:22",
        "[::ffff:169.254.169.254]:80",
        "[::127.0.0.1]:22",
        "[64:ff9b::169.254.169.254]:80",
        "[2002:a9fe:a9fe::1]:80",
        "[2002:7f00:1::]:22",
        "[64:ff9b:1::127.0.0.1]:22",
        "[64:ff9b:1:abcd::169.254.169.254]:80",
        "[::ffff:0:127.0.0.1]:22",
        "[2001:db8::5efe:127.0.0.1]:22",
        "[2001:db8::200:5efe:169.254.169.254]:80",
        "[2001:0:c000:201::80ff:fffe]:22",
    ] {
        assert_eq!(policy.destination(to(special), Whose::Others), Err(Refusal::Special), "{special}");
    }
    for other in ["10.2.0.2:22", "192.0.2.1:1", "[2001:db8::1]:443", "[64:ff9b::192.0.2.1]:80", "[fec0::1]:80"] {
        assert_eq!(policy.destination(to(other), Whose::Others), Ok(()), "{other}");
        assert_eq!(policy.destination(to(other), Whose::Own), Err(Refusal::Own), "{other}");
        assert_eq!(policy.destination(to(other), Whose::Many), Err(Refusal::Special), "{other}");
        assert_eq!(policy.destination(to(other), Whose::Unknown), Err(Refusal::Special), "{other}");
    }
}

#[test]
fn what_settings_allow_and_deny() {
    let some = policy(&["10.0.0.0/8", "192.0.2.7:443", "[2001:db8::/32]:8000-8999"], &["10.9.0.0/16", "*:25"]);
    let judged = |text: &str| some.destination(to(text), Whose::Others);
    for allowed in ["10.2.0.2:22", "192.0.2.7:443", "[2001:db8::1]:8000", "[2001:db8::1]:8999", "[::ffff:10.2.0.2]:22"]
    {
        assert_eq!(judged(allowed), Ok(()), "{allowed}");
    }
    for (text, refusal) in [
        ("10.9.0.2:22", Refusal::Denied),
        ("[::ffff:10.9.0.2]:22", Refusal::Denied),
        ("[64:ff9b::10.9.0.2]:22", Refusal::Denied),
        ("[64:ff9b:1::10.9.0.2]:22", Refusal::Denied),
        ("[2001::f5f6:fffd]:22", Refusal::Denied),
        ("10.2.0.2:25", Refusal::Denied),
        ("192.0.2.7:80", Refusal::NotAllowed),
        ("192.0.2.8:443", Refusal::NotAllowed),
        ("[2001:db8::1]:7999", Refusal::NotAllowed),
        ("[2001:db9::1]:8000", Refusal::NotAllowed),
    ] {
        assert_eq!(judged(text), Err(refusal), "{text}");
    }
}

/// A range refused by default is opened only by an entry that names it.
#[test]
fn defaults_are_opened_by_name() {
    let wide = policy(&["0.0.0.0/0", "::/0", "*:22"], &[]);
    assert_eq!(wide.destination(to("127.0.0.1:22"), Whose::Own), Err(Refusal::Special));
    assert_eq!(wide.destination(to("10.2.0.1:22"), Whose::Own), Err(Refusal::Own));
    let named = policy(&["169.254.10.0/24", "10.2.0.1:22", "127.0.0.1:80", "[::1]:80"], &[]);
    assert_eq!(named.destination(to("169.254.10.9:80"), Whose::Others), Ok(()));
    assert_eq!(named.destination(to("169.254.169.254:80"), Whose::Others), Err(Refusal::Special));
    assert_eq!(named.destination(to("10.2.0.1:22"), Whose::Own), Ok(()));
    assert_eq!(named.destination(to("10.2.0.1:80"), Whose::Own), Err(Refusal::Own));
    assert_eq!(named.destination(to("[::ffff:10.2.0.1]:22"), Whose::Own), Ok(()));
    // A loopback address is also the box's own, and must be named as such.
    assert_eq!(named.destination(to("127.0.0.1:80"), Whose::Own), Ok(()));
    assert_eq!(named.destination(to("[::1]:80"), Whose::Own), Ok(()));
    assert_eq!(policy(&["127.0.0.0/8"], &[]).destination(to("127.0.0.1:80"), Whose::Own), Err(Refusal::Own));
}

#[test]
fn sources_of_the_peer() {
    let some = Sources(Some(vec!["10.1.0.0/24".parse().expect("a prefix")]));
    let from = |text: &str| text.parse::<IpAddr>().expect("an address");
    assert_eq!(some.permit(from("10.1.0.2")), Ok(()));
    assert_eq!(some.permit(from("::ffff:10.1.0.2")), Ok(()));
    assert_eq!(some.permit(from("10.1.1.2")), Err(Refusal::NotAllowed));
    assert_eq!(some.permit(from("fd01::2")), Err(Refusal::NotAllowed));
    let all = Sources::default();
    for nobody in ["0.0.0.0", "127.0.0.1", "::1", "::", "224.0.0.1", "ff02::1", "255.255.255.255", "::ffff:127.0.0.1"] {
        assert_eq!(all.permit(from(nobody)), Err(Refusal::Special), "{nobody}");
    }
    for host in ["10.1.1.2", "fd01::2", "fe80::1", "169.254.1.1"] {
        assert_eq!(all.permit(from(host)), Ok(()), "{host}");
    }
    let mut packet = [0; 40];
    packet[0] = 0x45;
    packet[12..16].copy_from_slice(&[10, 1, 0, 2]);
    assert!(some.permit_packet(&packet));
    packet[14] = 1;
    assert!(!some.permit_packet(&packet) && all.permit_packet(&packet));
    packet[0] = 0x60;
    assert!(!some.permit_packet(&packet));
    let prefix: Prefix = "fd01::/64".parse().expect("a prefix");
    packet[8..12].copy_from_slice(&[0xfd, 1, 0, 0]);
    packet[12..16].fill(0);
    assert!(Sources(Some(vec![prefix])).permit_packet(&packet));
    assert_eq!((Prefix::new(from("10.0.0.0"), 33), Prefix::new(from("::"), 129)), (None, None));
    for odd in [&[][..], &[0x45; 15], &[0x60; 23], &[0x25; 40]] {
        assert!(!all.permit_packet(odd), "no packet of IP");
    }
}

#[test]
fn what_cannot_be_read_is_said() {
    for (text, expected) in [
        ("10.0.0.0/33", "`33` is not a prefix length from 0 to 32"),
        ("2001:db8::/129", "from 0 to 128"),
        ("10.0.0.0/+8", "`+8` is not a prefix length"),
        ("10.0.0.0/8:+80", "not a port"),
        ("10.0.0.0/8:80-+90", "not a port or a range"),
        ("10.1.2.3/8", "bits beyond the first 8"),
        ("example.org:80", "not an IP address"),
        ("10.0.0.0/8:0", "not a port"),
        ("10.0.0.0/8:90-80", "not a port or a range"),
        ("10.0.0.0/8:", "not a port"),
        ("[2001:db8::/32", "not closed"),
        ("[2001:db8::/32]80", "follow a colon"),
        ("", "not an IP address"),
    ] {
        let error = text.parse::<Destination>().expect_err(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
}

/// The literal twin: addresses as strings of bits, lists searched entry by entry, each class spelled out.
mod literal {
    use super::*;

    pub(super) fn bits(address: IpAddr) -> String {
        match address {
            IpAddr::V4(address) => address.octets().iter().map(|byte| format!("{byte:08b}")).collect(),
            IpAddr::V6(address) => match address.to_ipv4_mapped() {
                Some(mapped) => bits(mapped.into()),
                None => address.octets().iter().map(|byte| format!("{byte:08b}")).collect(),
            },
        }
    }

    fn begins(address: &str, prefix: &str, len: usize) -> bool {
        address.len() == len && address.starts_with(prefix)
    }

    /// The bits that a prefix is made of, and the length of its addresses.
    fn prefix(prefix: &Prefix) -> (String, usize) {
        let all = bits(prefix.address);
        (all[..usize::from(prefix.bits)].to_owned(), all.len())
    }

    fn matches(entry: &Destination, address: &str, port: u16) -> bool {
        let in_prefix = match &entry.prefix {
            None => true,
            Some(it) => {
                let (prefix, len) = prefix(it);
                begins(address, &prefix, len)
            }
        };
        in_prefix && *entry.ports.start() <= port && port <= *entry.ports.end()
    }

    fn special(address: &str) -> Option<String> {
        let list = [
            (32, "00000000".to_owned()),
            (32, "01111111".to_owned()),
            (32, "1010100111111110".to_owned()),
            (32, "1110".to_owned()),
            (32, "1".repeat(32)),
            (128, "0".repeat(128)),
            (128, "0".repeat(127) + "1"),
            (128, "1111111010".to_owned()),
            (128, "11111111".to_owned()),
        ];
        list.into_iter().find(|(len, prefix)| begins(address, prefix, *len)).map(|(_, prefix)| prefix)
    }

    fn embedded(address: &str) -> Option<String> {
        if address.len() != 128 || address == "0".repeat(128) || address == "0".repeat(127) + "1" {
            return None;
        }
        let nat64 = format!("{:016b}{:016b}{}", 0x64, 0xff9b, "0".repeat(64));
        if address.starts_with(&"0".repeat(96)) || address.starts_with(&nat64) {
            return Some(address[96..].to_owned());
        }
        address.starts_with(&format!("{:016b}", 0x2002)).then(|| address[16..48].to_owned())
    }

    pub(super) fn destination(policy: &Policy, to: SocketAddr, whose: Whose) -> Result<(), Refusal> {
        let address = bits(to.ip());
        let other = embedded(&address);
        for entry in &policy.deny {
            if matches(entry, &address, to.port()) {
                return Err(Refusal::Denied);
            }
            if let Some(other) = &other
                && matches(entry, other, to.port())
            {
                return Err(Refusal::Denied);
            }
        }
        let opened = |class: &str| {
            for entry in &policy.allow {
                if let Some(it) = &entry.prefix {
                    let (prefix, len) = prefix(it);
                    if matches(entry, &address, to.port()) && len == address.len() && prefix.starts_with(class) {
                        return true;
                    }
                }
            }
            false
        };
        if let Some(class) = special(&address)
            && !opened(&class)
        {
            return Err(Refusal::Special);
        }
        if other.is_some_and(|other| special(&other).is_some()) {
            return Err(Refusal::Special);
        }
        match whose {
            Whose::Own if !opened(&address) => return Err(Refusal::Own),
            Whose::Many | Whose::Unknown => return Err(Refusal::Special),
            _ => {}
        }
        for entry in &policy.allow {
            if matches(entry, &address, to.port()) {
                return Ok(());
            }
        }
        if policy.allow.is_empty() { Ok(()) } else { Err(Refusal::NotAllowed) }
    }
}

/// Addresses near the edges of what is special, in all their forms.
fn address() -> impl Strategy<Value = IpAddr> {
    let v4 = prop_oneof![
        any::<u32>(),
        prop::sample::select(vec![
            0u32,
            0x7f00_0000,
            0xa9fe_a9fe,
            0xa9fd_ffff,
            0xe000_0000,
            0xefff_ffff,
            0xffff_ffff,
            0x0a00_0000
        ])
        .prop_flat_map(|base| (Just(base), 0u32..4).prop_map(|(base, more)| base.wrapping_add(more))),
    ];
    let v4 = v4.prop_map(Ipv4Addr::from_bits);
    let v6 = prop_oneof![
        any::<u128>(),
        0u128..4,
        (0xfe80u128 << 112..=0xfebf << 112),
        (0xff02u128 << 112..=0xff02 << 112),
        v4.clone().prop_map(|v4| v4.to_ipv6_mapped().to_bits()),
        v4.clone().prop_map(|v4| u128::from(v4.to_bits())),
        v4.clone().prop_map(|v4| 0x64_ff9b << 96 | u128::from(v4.to_bits())),
        v4.clone().prop_map(|v4| 0x2002 << 112 | u128::from(v4.to_bits()) << 80),
    ];
    prop_oneof![v4.prop_map(IpAddr::V4), v6.prop_map(|bits| IpAddr::V6(Ipv6Addr::from_bits(bits)))]
}

/// Entries around a few addresses, so that they overlap.
fn entry() -> impl Strategy<Value = Destination> {
    let prefix = (address(), 0u8..=128).prop_map(|(address, bits)| {
        let host = Prefix::host(address);
        let bits = bits % (host.bits + 1);
        let cut = Prefix { bits, ..host }.cut(host.address);
        let address = match host.address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits((cut >> 96) as u32)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(cut)),
        };
        Prefix::new(address, bits)
    });
    let ports = (0u16..6, 0u16..6).prop_map(|(a, b)| a.min(b)..=a.max(b));
    (prop::option::of(prefix), ports).prop_map(|(prefix, ports)| Destination { prefix: prefix.flatten(), ports })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// The policy equals the literal search of its lists, and no own or special address is reached unless an entry names it.
    #[test]
    fn the_policy_is_the_literal_walk(
        allow in prop::collection::vec(entry(), 0..4),
        deny in prop::collection::vec(entry(), 0..3),
        address in address(),
        of_entry in any::<prop::sample::Index>(),
        port in 0u16..6,
        whose in prop::sample::select(vec![Whose::Others, Whose::Own, Whose::Many, Whose::Unknown]),
    ) {
        let policy = Policy { allow, deny };
        // In half of the cases an address of the lists.
        let known: Vec<IpAddr> =
            policy.allow.iter().chain(&policy.deny).filter_map(|entry| entry.prefix).map(|prefix| prefix.address).collect();
        let address = if known.is_empty() || port % 2 == 0 { address } else { *of_entry.get(&known) };
        let to = SocketAddr::new(address, port);
        let judged = policy.destination(to, whose);
        prop_assert_eq!(judged, literal::destination(&policy, to, whose));
        let v4_or_v6 = Policy::default().destination(to, whose);
        if policy.allow.is_empty() && judged.is_ok() {
            prop_assert_eq!(v4_or_v6, Ok(()), "settings that allow nothing more allow no more");
        }
        // The mapped form is judged as the address itself.
        if let IpAddr::V4(v4) = address {
            let mapped = SocketAddr::new(v4.to_ipv6_mapped().into(), port);
            prop_assert_eq!(policy.destination(mapped, whose), judged);
        }
    }
}
