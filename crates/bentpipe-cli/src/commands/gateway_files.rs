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
