use super::*;

#[test]
fn what_would_be_typed() {
    let near = Instance::new("near");
    let (mark, table, preference) = (near.mark(), near.local().table, near.local().preference);
    let split = |refuse| Rules::Split {
        capture: vec!["lan0".into(), "lan1".into()],
        port: 4000,
        ports: vec![80, 443],
        refuse,
        to: None,
        device: None,
    };
    let expected = format!(
        "nft -f - <<'END'
add table inet bentpipe_near
delete table inet bentpipe_near
table inet bentpipe_near {{
\tchain ours {{
\t\tsocket wildcard 1 return
\t\tmeta mark set {mark:#x} accept
\t}}
\tchain prerouting {{
\t\ttype filter hook prerouting priority mangle; policy accept;
\t\t# Connections that end here do not pass the FORWARD chain of this machine, nor do those that the gateway opens:
\t\t# `allow` and `deny` in the settings say which destinations they may reach.
\t\t# New connections: they end here, or pass while the gateway does not listen. This comes before the rule for
\t\t# existing connections, so that addresses and ports in TIME-WAIT can be used again at once.
\t\tiifname {{ \"lan0\", \"lan1\" }} meta nfproto ipv4 tcp flags & (fin | syn | rst | ack) == syn tcp dport {{ 80, 443 }} fib daddr type != local tproxy ip to :4000 meta mark set {mark:#x} accept
\t\tiifname {{ \"lan0\", \"lan1\" }} meta nfproto ipv6 tcp flags & (fin | syn | rst | ack) == syn tcp dport {{ 80, 443 }} fib daddr type != local tproxy ip6 to :4000 meta mark set {mark:#x} accept
\t\t# Connections that already end here, whatever their addresses; those older than the gateway pass.
\t\tmeta l4proto tcp socket transparent 1 jump ours
\t\t# ICMP errors about them, whose destination is the client or the server: routers tell the MTU, and that a server cannot be reached.
\t\tmeta l4proto {{ icmp, icmpv6 }} socket transparent 1 jump ours
\t}}
}}
END
ip -4 rule add preference {preference} fwmark {mark:#x} lookup {table}
ip -4 route replace local default dev lo table {table}
ip -6 rule add preference {preference} fwmark {mark:#x} lookup {table}
ip -6 route replace local default dev lo table {table}
"
    );
    assert_eq!(split(false).script(&near), expected);
    assert_eq!(split(false).guard(&near), None);
    let refusal = "\t\tiifname { \"lan0\", \"lan1\" } tcp flags & (fin | syn | rst | ack) == syn tcp dport { 80, 443 } fib daddr \
                   type != local reject with tcp reset\n\t}\n}\n";
    assert!(split(true).nft(&near).ends_with(refusal), "behind all others");
    let guard = split(true).guard(&near).expect("it is wanted");
    for fragments in
        ["ip frag-off & 0x3fff != 0 tcp dport { 80, 443 } fib", "exthdr frag exists tcp dport { 80, 443 } fib"]
    {
        assert!(guard.contains(fragments), "{guard}");
    }
    assert!(guard.ends_with(refusal) && !guard.contains("tproxy") && !guard.contains("mark set"), "{guard}");
    let far = Rules::Split { capture: vec![], port: 4000, ports: vec![], refuse: true, to: None, device: None };
    assert!(!far.nft(&near).contains("reject") && far.guard(&near).is_none(), "it takes nobody's");

    let (into, sent) = (near.device(), near.sent());
    let uplink = Rules::Uplink { satellite: vec!["sat0".into()], device: "bentpipe0".into(), ports: vec![443] };
    let expected = format!(
        "nft -f - <<'END'
add table inet bentpipe_near
delete table inet bentpipe_near
table inet bentpipe_near {{
\tchain ours {{
\t\tsocket wildcard 1 return
\t\tmeta mark set {mark:#x} notrack accept
\t}}
\tchain prerouting {{
\t\ttype filter hook prerouting priority raw; policy accept;
\t\t# Connections that end here do not pass the FORWARD chain of this machine, nor do those that the gateway opens:
\t\t# `allow` and `deny` in the settings say which destinations they may reach.
\t\t# Connections that already end here, whatever their addresses; those older than the gateway pass.
\t\tmeta l4proto tcp socket transparent 1 jump ours
\t\t# ICMP errors about them, whose destination is the client or the server: routers tell the MTU, and that a server cannot be reached.
\t\tmeta l4proto {{ icmp, icmpv6 }} socket transparent 1 jump ours
\t\t# Packets from clients go into the device; without a device they pass, as do those with IPv6 extension headers.
\t\tiifname {{ \"sat0\" }} meta nfproto ipv4 meta l4proto tcp tcp dport {{ 443 }} fib daddr type != local meta mark set {into:#x} notrack accept
\t\tiifname {{ \"sat0\" }} meta nfproto ipv6 ip6 nexthdr tcp tcp dport {{ 443 }} fib daddr type != local meta mark set {into:#x} notrack accept
\t}}
\tchain output {{
\t\ttype filter hook output priority raw; policy accept;
\t\tmeta mark {sent:#x} notrack
\t}}
}}
END
ip -4 rule add preference {preference} fwmark {mark:#x} lookup {table}
ip -4 rule add preference {into_preference} fwmark {into:#x} lookup {into_table}
ip -4 route replace local default dev lo table {table}
ip -6 rule add preference {preference} fwmark {mark:#x} lookup {table}
ip -6 rule add preference {into_preference} fwmark {into:#x} lookup {into_table}
ip -6 route replace local default dev lo table {table}
# Once the gateway has created its device:
ip -4 route replace default dev bentpipe0 table {into_table}
ip -6 route replace default dev bentpipe0 table {into_table}
sysctl -w net.ipv4.conf.bentpipe0.rp_filter=2
",
        into = into.mark,
        into_table = into.table,
        into_preference = into.preference,
    );
    assert_eq!(uplink.script(&near), expected);
    let relay = Rules::Relay { satellite: vec!["sat0".into()], port: 4000, ports: Vec::new() };
    let text = relay.nft(&near);
    let [new, ours] = ["tproxy ip6 to :4000", "socket transparent 1 jump ours"].map(|part| text.find(part));
    assert!(new.is_some() && new < ours, "new ones before ours: {text}");
    assert!(text.contains("notrack accept") && text.contains(&format!("meta mark {sent:#x} notrack")), "{text}");
    let link = Rules::Link { device: "bentpipe0".into() };
    assert!(link.script(&near).contains("oifname \"bentpipe0\" tcp flags syn tcp option maxseg size set rt mtu"));
    assert_eq!(link.routes(&near), Vec::<Vec<String>>::new());
}

/// Marks, tables and priorities of any two names are disjoint, unless the names collide, which is detected.
#[test]
fn names_share_nothing() {
    let names: Vec<_> = (0..200).map(|n| Instance::new(&format!("gateway-{n}"))).collect();
    for (n, one) in names.iter().enumerate() {
        let marks = [one.mark(), one.into_mark(), one.sent()];
        assert_eq!(marks.iter().collect::<std::collections::BTreeSet<_>>().len(), 3);
        for other in names[n + 1..].iter().filter(|other| !one.collides_with(other)) {
            assert!(
                !marks.contains(&other.mark()) && !marks.contains(&other.into_mark()) && !marks.contains(&other.sent())
            );
            let (a, b) = ([one.local(), one.device()], [other.local(), other.device()]);
            assert!(a.iter().all(|a| b.iter().all(|b| a.table != b.table && a.preference != b.preference)));
        }
        assert!(one.device().preference < 32_766);
    }
    // FNV-1a, 32 bits, of "a" is 0xe40c292c (its authors' test vectors): slot 0x12c.
    assert_eq!(Instance::new("a").mark(), 0x00b3_0000 + 4 * 0x12c);
}

/// A hub captures only destinations behind its peers, by IP version, and nothing of an IP version without peers.
#[test]
fn a_hub_takes_what_lies_behind_its_peers() {
    let hub = |to: &[&str]| Rules::Split {
        capture: vec!["lan0".into()],
        port: 4000,
        ports: vec![],
        refuse: true,
        to: Some(to.iter().map(|text| text.parse().expect("a prefix")).collect()),
        device: Some("bentpipe0".into()),
    };
    let instance = Instance::new("hub");
    let both = hub(&["10.1.0.0/16", "fd01::/64", "10.2.0.7"]);
    let text = both.nft(&instance);
    let (v4, v6) = ("ip daddr { 10.1.0.0/16, 10.2.0.7/32 } tcp flags", "ip6 daddr { fd01::/64 } tcp flags");
    for family in [format!("meta nfproto ipv4 {v4}"), format!("meta nfproto ipv6 {v6}")] {
        assert!(text.contains(&family), "{text}");
    }
    assert!(text.contains("chain forward") && text.contains("oifname \"bentpipe0\""), "{text}");
    let guard = both.guard(&instance).expect("it is wanted");
    assert!(guard.contains(v4) && guard.contains(v6) && guard.matches("reject").count() == 2, "{guard}");
    let (one, none) = (hub(&["10.1.0.0/16"]).nft(&instance), hub(&[]).nft(&instance));
    assert!(one.contains("tproxy ip to") && !one.contains("tproxy ip6"), "{one}");
    assert!(!none.contains("tproxy") && !none.contains("reject"), "{none}");
}
