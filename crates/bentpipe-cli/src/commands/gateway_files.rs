//! The settings files of the gateways that carry out a scenario's `[[gateways]]`.

use bentpipe_engine::gateway::UplinkSender;
use bentpipe_language::quantity::{SIZE, format_duration, format_rate};
use bentpipe_study::scenario::{Carries, PairSpec, Scenario, SenderOf, UplinkSpec};

/// What the scenario does not know of a box, as lines of its file: keys, addresses and interfaces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    /// Before the tables.
    pub(crate) top: String,
    /// In `[tunnel]`.
    pub(crate) tunnel: String,
    /// In `[split]`.
    pub(crate) split: String,
    /// In `[link]`.
    pub(crate) link: String,
    /// In `[uplink]`.
    pub(crate) uplink: String,
    /// In `[uplink]`, for the engine's sender.
    pub(crate) engine: String,
}

impl Place {
    /// Values for an administrator to replace, of the near box (0) or the far one (1).
    pub(crate) fn unknown(side: usize) -> Self {
        let peer = match side {
            0 => "peer = \"198.51.100.7:4500\"   # the other box: its address and port\n",
            _ => "",
        };
        let capture = [
            "# interfaces whose hosts' connections are intercepted",
            "# interfaces of hosts on this side, if they open connections too",
        ];
        Place {
            tunnel: format!(
                "private_key = \"private.key\"   # written by `bentpipe gateway keygen`\n\
                 peer_key = \"THE OTHER BOX'S PUBLIC KEY\"   # printed by `bentpipe gateway keygen` there\n{peer}"
            ),
            split: format!("capture = [\"lan0\"]   {}\n", capture[side]),
            link: format!(
                "addresses = [\"10.8.0.{}/24\"]   # of the TUN device; route into it what should go over the link\n",
                side + 1
            ),
            uplink: "satellite = [\"sat0\"]   # interfaces towards the clients\n".to_owned(),
            ..Place::default()
        }
    }
}

/// The file of the near box (0) or the far one (1).
pub(crate) fn pair_file(scenario: &Scenario, pair: &PairSpec, side: usize, place: &Place) -> String {
    let satellite = pair.satellite[side];
    let name = ["near", "far"][side];
    let node = &scenario[pair.nodes[side]];
    let (rate, round_trip) = (format_rate(satellite.rate), format_duration(satellite.round_trip));
    let mtu = SIZE.format(u64::from(satellite.path_mtu));
    let memory = SIZE.format(pair.memory.get());
    let Place { top, tunnel, split, link, .. } = place;
    let shape = match pair.carries {
        Carries::Streams { max_streams } => {
            format!("[split]\n{split}max_streams = {max_streams}\nmemory = \"{memory}\"\n")
        }
        Carries::Packets => {
            let advice = pair.advice[side].map(|rate| format!("throughput_advice = \"{}\"\n", format_rate(rate)));
            format!("[link]\n{link}memory = \"{memory}\"\n{}", advice.unwrap_or_default())
        }
    };
    format!(
        "name = \"{name}\"   # the box at `{node}`\n{top}\n[tunnel]\n{tunnel}mtu = \"{mtu}\"\n\n[satellite]\nrate = \"{rate}\"\n\
         round_trip = \"{round_trip}\"\nreordering = {}\nshared = {}\n\n{shape}",
        satellite.reordering, satellite.shared
    )
}

/// The file of the box at the uplink.
pub(crate) fn uplink_file(scenario: &Scenario, spec: &UplinkSpec, place: &Place) -> String {
    let node = &scenario[spec.at];
    let UplinkSender { rate, round_trip, mtu, window, .. } = spec.sender;
    let Place { top, uplink, engine, .. } = place;
    let sender = match &spec.by {
        SenderOf::Kernel { congestion } => format!("sender = \"kernel\"\ncongestion = \"{congestion}\"\n"),
        SenderOf::Engine { variant, early_accept, .. } => {
            let window = window.map(|window| format!("window = \"{}\"\n", SIZE.format(window))).unwrap_or_default();
            let mtu = SIZE.format(u64::from(mtu));
            let tcp = Some(spec.tcp_toml()).filter(|tcp| !tcp.is_empty()).map(|tcp| format!("\n{tcp}"));
            let tcp = tcp.unwrap_or_default();
            format!("variant = \"{variant}\"\nmtu = \"{mtu}\"\nearly_accept = {early_accept}\n{window}{engine}{tcp}")
        }
    };
    format!(
        "name = \"uplink\"   # the box at `{node}`\n{top}\n[satellite]\nrate = \"{}\"\nround_trip = \"{}\"\n\n\
         [uplink]\n{uplink}{sender}",
        format_rate(rate),
        format_duration(round_trip)
    )
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use bentpipe_gateway::settings::{GatewayFile, ShapeTable};

    use super::*;

    fn scenario(gateway: &str) -> Scenario {
        let text = format!(
            "name = \"t\"\n[[links]]\nname = \"sat\"\nbetween = [\"N\", \"F\"]\nrate = \"10 Mbit/s\"\ndelay = \"250 ms\"\n\
             [[gateways]]\nname = \"g\"\n{gateway}\n"
        );
        Scenario::parse(&text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"))
    }

    fn read(text: &str) -> GatewayFile {
        GatewayFile::parse(text, "t.toml").unwrap_or_else(|errors| panic!("{errors}\n{text}"))
    }

    /// Each setting of the scenario reaches the gateway, and so does each line of the place.
    #[test]
    fn all_settings_are_carried_over() {
        let key = "EOXVdFLr6cdSWbcCkTa1KrbiNbc5XhUgQcNZXLm1p0s=";
        let place = Place {
            top: "user = \"root\"\n".to_owned(),
            tunnel: format!("private_key = \"k\"\npeer_key = \"{key}\"\n"),
            split: "capture = [\"lan0\"]\n".to_owned(),
            link: "device = \"gateway0\"\naddresses = [\"10.0.0.1/32\"]\n".to_owned(),
            uplink: "satellite = [\"sat1\"]\n".to_owned(),
            engine: "device = \"gateway0\"\n".to_owned(),
        };
        let pair = |gateway: &str| {
            let more = "near = \"N\"\nfar = \"F\"\nrate = [\"1 Mbit/s\", \"9 Mbit/s\"]\nround_trip = \"600 ms\"\n\
                        reordering = 7\nshared = true\nmtu = \"1400 B\"\nmemory = \"64 MiB\"";
            let scenario = scenario(&format!("{gateway}\n{more}"));
            let files = [0, 1].map(|side| read(&pair_file(&scenario, &scenario.gateways.pairs[0], side, &place)));
            for (file, spec) in files.iter().zip(scenario.gateways.pairs[0].satellite) {
                let told = file.satellite;
                assert_eq!(
                    (told.rate, told.round_trip, told.reordering, told.shared),
                    (spec.rate, spec.round_trip, 7, true)
                );
                assert_eq!(file.tunnel.as_ref().map(|tunnel| tunnel.mtu), Some(1400));
                assert_eq!((file.user.as_deref(), file.peers[0].key.to_string()), (Some("root"), key.to_owned()));
            }
            files
        };
        for (file, name) in pair("shape = \"split\"\nmax_streams = 9").into_iter().zip(["near", "far"]) {
            let ShapeTable::Split(split) = &file.shape else { panic!("{file:?}") };
            assert_eq!((&*file.name, split.taken.max_streams, split.taken.memory.get()), (name, 9, 64 << 20));
            assert_eq!(split.taken.interfaces, ["lan0"]);
        }
        let advice = ["1 Mbit/s", "8 Mbit/s"];
        let files = pair(&format!("shape = \"link\"\nthroughput_advice = {advice:?}"));
        for (file, rate) in files.into_iter().zip([1_000_000, 8_000_000]) {
            let ShapeTable::Link(link) = &file.shape else { panic!("{file:?}") };
            let advised = link.advice.map(|advice| advice.rate(file.satellite.rate).bits_per_second());
            assert_eq!((&*link.device, link.memory.get(), advised), ("gateway0", 64 << 20, Some(rate)));
        }
        let engine = "shape = \"uplink\"\nat = \"N\"\nvariant = \"sack\"\nmtu = \"1400 B\"\nearly_accept = true\nwindow = \"90 kB\"\n\
                      tcp.rto.min = \"300 ms\"\ntcp.timestamps = false";
        let scenario_ = scenario(engine);
        let spec = &scenario_.gateways.uplinks[0];
        let file = read(&uplink_file(&scenario_, spec, &place));
        let ShapeTable::Uplink(uplink) = &file.shape else { panic!("{file:?}") };
        assert_eq!(
            (&*uplink.variant, uplink.mtu, uplink.early_accept, &*uplink.device),
            ("sack", 1400, true, "gateway0")
        );
        assert_eq!((uplink.window.map(|window| window.get()), &uplink.tcp), (spec.sender.window, &spec.sender.tcp));
        let kernel = scenario("shape = \"uplink\"\nat = \"N\"\nsender = \"kernel\"\ncongestion = \"reno\"");
        let file = read(&uplink_file(&kernel, &kernel.gateways.uplinks[0], &place));
        let ShapeTable::Relay(relay) = &file.shape else { panic!("{file:?}") };
        assert_eq!((&*relay.congestion, &relay.taken.interfaces[..]), ("reno", &["sat1".to_owned()][..]));
    }
}
