//! The gateways of a scenario in real time: `bentpipe gateway run` in the namespaces of the boxes.

mod process;
mod report;

use std::io::Write;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bentpipe_emulator::{Boxes, Emulator, Site};
use bentpipe_engine::units::{Duration, Time};
use bentpipe_gateway::tunnel::PrivateKey;
use bentpipe_io::{Caught, Signals, note};
use bentpipe_study::scenario::{Carries, NodeId, PairSpec, Scenario, UplinkSpec};

use self::process::Process;
pub(super) use self::report::{BoxLine, table};
use super::program::in_capitals;
use crate::commands::gateway_files::{Place, pair_file, uplink_file};
use crate::failure::{End, Failure};
use crate::interrupt;

/// Interval of checks whether the gateways run, and while they start whether they are ready.
const LOOK: Duration = Duration::from_millis(100);
const START: Duration = Duration::from_millis(20);
/// Max time for a tunnel to come up, besides its round trips: the gateway repeats a handshake every few seconds.
const PATIENCE: Duration = Duration::from_secs(30);
const ROUND_TRIPS: u64 = 10;
/// Max time for the discovery of the path MTU after that, besides the round trips.
const DISCOVERY: Duration = Duration::from_secs(3);

/// Device of `link` and of the engine's sender of `uplink`. The emulation's own devices are `sat0` and `lan0`.
const DEVICE: &str = "gateway0";
/// The default port of the tunnel.
const PORT: u16 = 4500;

/// A gateway of the scenario, in one of its boxes.
#[derive(Debug)]
struct Running {
    /// Its name in the scenario.
    name: String,
    /// The node of the box.
    node: String,
    file: PathBuf,
    process: Process,
}

/// The gateways of an emulation. They end when it is dropped.
#[derive(Debug)]
pub(super) struct Gateways {
    all: Vec<Running>,
    looked: Time,
    /// A number of round trips of the longest link.
    round_trips: Duration,
}

/// A box and what its gateway needs.
struct Wanted<'a> {
    name: &'a str,
    site: &'a Site,
    /// The name of the file without its ending.
    stem: String,
    text: String,
}

impl Gateways {
    /// Starts a gateway in each box. They are ready after [`Gateways::wait`].
    pub(super) fn start(scenario: &Scenario, boxes: Option<&Boxes>) -> Result<Gateways, Failure> {
        let round_trips = scenario.gateways.pairs.iter().map(|pair| pair.satellite[0].round_trip);
        let round_trips = round_trips.max().unwrap_or(Duration::ZERO).saturating_mul(ROUND_TRIPS);
        let mut started = Gateways { all: Vec::new(), looked: Time::ZERO, round_trips };
        let Some(boxes) = boxes else { return Ok(started) };
        let mut wanted = Vec::new();
        for (n, pair) in scenario.gateways.pairs.iter().enumerate() {
            wanted.extend(pair_of(scenario, boxes, n, pair)?);
        }
        let uplinks = scenario.gateways.uplinks.iter().enumerate();
        wanted.extend(uplinks.map(|(n, uplink)| uplink_of(scenario, boxes, n, uplink)));
        for Wanted { name, site, stem, text } in wanted {
            let file = boxes.folder.join(format!("{stem}.toml"));
            write_private(&file, &text)?;
            let node = scenario[site.node].to_owned();
            let process = Process::start(site, &file, &boxes.folder.join(format!("{stem}.sock")));
            let process = process
                .map_err(|error| Failure::broken(format!("the gateway at `{node}` cannot be started: {error}")))?;
            started.all.push(Running { name: name.to_owned(), node, file, process });
        }
        Ok(started)
    }

    /// Runs the links until all gateways are ready and their tunnels are up. Returns `Some` if the user ended it before.
    /// `signals` are those that are caught, if any.
    pub(super) fn wait(
        &mut self,
        scenario: &Scenario,
        boxes: &Boxes,
        emulator: &mut Emulator,
        signals: Option<&Signals>,
    ) -> Result<Option<End>, Failure> {
        let patience = PATIENCE + self.round_trips;
        let limit = emulator.clock().now() + patience;
        let mut up_since = None;
        loop {
            let now = emulator.clock().now();
            emulator.turn(Some(now + START)).map_err(Failure::broken)?;
            while let Some(caught) = signals.map_or(Ok(None), Signals::next).map_err(Failure::broken)? {
                if caught != Caught::Child {
                    return Ok(Some(End::Interrupted));
                }
            }
            if interrupt::asked() {
                return Ok(Some(End::Interrupted));
            }
            if let Some(ended) = self.all.iter_mut().find_map(|running| Some((running.process.ended()?, &*running))) {
                let (why, Running { name, node, process, .. }) = ended;
                let message = format!("the gateway `{name}` at `{node}` ended before it was ready: {why}");
                return Err(Failure::broken(message + &process.last_lines()));
            }
            let late = self.all.iter_mut().position(|running| !running.process.is_up());
            if let Some(late) = late.filter(|_| now > limit) {
                let Running { name, node, process, .. } = &self.all[late];
                let after = patience.as_secs_f64();
                let message = format!("the gateway `{name}` at `{node}` was not ready after {after:.0} s");
                return Err(Failure::broken(message + &process.last_lines()));
            }
            if late.is_some() {
                continue;
            }
            // In the simulation, too, the MTU is known from the start. Until it is, frames go in parts.
            let discovery = *up_since.get_or_insert(now) + DISCOVERY + self.round_trips;
            if now > discovery || self.all.iter().all(|running| running.process.knows_its_path()) {
                break;
            }
        }
        self.lead(scenario, boxes)?;
        Ok(None)
    }

    /// Routes what goes over the satellite into the devices of gateways of shape `link`.
    fn lead(&self, scenario: &Scenario, boxes: &Boxes) -> Result<(), Failure> {
        for pair in scenario.gateways.pairs.iter().filter(|pair| matches!(pair.carries, Carries::Packets)) {
            let [near, far] = pair.nodes.map(|node| at(boxes, node));
            for (site, peer) in [(near, far), (far, near)] {
                let Some(side) = site.towards(peer.node) else { continue };
                let routed = site.route(side, DEVICE, peer);
                routed
                    .map_err(|error| Failure::broken(format!("the routes of `{}`: {error}", &scenario[site.node])))?;
            }
        }
        Ok(())
    }

    /// Where each gateway is, and its file; empty without gateways.
    pub(super) fn text(&self) -> String {
        let line =
            |Running { name, node, file, .. }: &Running| format!("gateway `{name}` at `{node}`: {}\n", file.display());
        self.all.iter().map(line).collect()
    }

    /// Environment variables with the file of each gateway, for `bentpipe gateway status`.
    pub(super) fn variables(&self) -> impl Iterator<Item = (String, &Path)> {
        let of = |running: &Running| format!("BENTPIPE_GATEWAY_{}", in_capitals(&running.node));
        self.all.iter().map(move |running| (of(running), running.file.as_path()))
    }

    /// When [`Gateways::look`] is due.
    pub(super) fn next(&self, now: Time) -> Option<Time> {
        (!self.all.is_empty()).then(|| now + LOOK)
    }

    /// Says at times whether a gateway has ended.
    pub(super) fn look(&mut self, now: Time) {
        if self.all.is_empty() || self.looked + LOOK > now {
            return;
        }
        self.looked = now;
        for Running { name, node, process, .. } in &mut self.all {
            if process.has_news()
                && let Some(why) = process.ended()
            {
                note!(
                    "bentpipe: the gateway `{name}` at `{node}` has ended: {why}; new connections pass without it{}",
                    process.last_lines()
                );
            }
        }
    }

    /// True if a gateway has ended by itself.
    pub(super) fn has_ended(&mut self) -> bool {
        self.all.iter_mut().any(|running| running.process.ended().is_some())
    }

    /// The gateways as they are announced.
    pub(super) fn announced(&self) -> Vec<BoxLine> {
        self.all.iter().map(|Running { name, node, file, .. }| BoxLine::new(name, node, file)).collect()
    }

    /// The gateways with their counters, at the end.
    pub(super) fn lines(&mut self) -> Vec<BoxLine> {
        let line = |Running { name, node, file, process }: &mut Running| {
            BoxLine::new(name, node, file).at_the_end(process.ended(), process.status_now())
        };
        self.all.iter_mut().map(line).collect()
    }
}

/// The box at a node.
fn at(boxes: &Boxes, node: NodeId) -> &Site {
    boxes.at(node).expect("the nodes of gateways have boxes")
}

/// Lines before the tables: the gateway stays root, which owns the folder.
fn top(stem: &str) -> String {
    format!("control = \"{stem}.sock\"\nuser = \"root\"\n")
}

/// A list of strings in TOML.
fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.map(|item| format!("\"{item}\"")).collect::<Vec<_>>().join(", "))
}

fn pair_of<'a>(
    scenario: &Scenario,
    boxes: &'a Boxes,
    n: usize,
    pair: &'a PairSpec,
) -> Result<[Wanted<'a>; 2], Failure> {
    let keys = [(); 2].map(|()| PrivateKey::generate());
    let stems = ["near", "far"].map(|side| format!("pair{n}-{side}"));
    for (key, stem) in keys.iter().zip(&stems) {
        write_private(&boxes.folder.join(format!("{stem}.key")), &format!("{}\n", *key.reveal()))?;
    }
    let wanted = |side: usize| {
        let [site, peer] = [side, 1 - side].map(|side| at(boxes, pair.nodes[side]));
        let stem = stems[side].clone();
        // The near box opens the tunnel.
        let opens = if side == 0 { format!("peer = \"{}:{PORT}\"\n", peer.v4) } else { String::new() };
        let own = site.sides.iter().filter(|side| side.neighbour != peer.node).map(|side| side.device.clone());
        let addresses = [Some((IpAddr::from(site.v4), 32)), site.v6.map(|v6| (v6.into(), 128))];
        let addresses = addresses.into_iter().flatten().map(|(address, prefix)| format!("{address}/{prefix}"));
        let place = Place {
            top: top(&stem),
            tunnel: format!(
                "private_key = \"{stem}.key\"\npeer_key = \"{}\"\nstate = \"{stem}.state\"\n{opens}",
                keys[1 - side].public()
            ),
            split: format!("capture = {}\n", list(own)),
            link: format!("device = \"{DEVICE}\"\naddresses = {}\n", list(addresses)),
            ..Place::default()
        };
        Wanted { name: &pair.name, site, stem, text: pair_file(scenario, pair, side, &place) }
    };
    Ok([wanted(0), wanted(1)])
}

fn uplink_of<'a>(scenario: &Scenario, boxes: &'a Boxes, n: usize, uplink: &'a UplinkSpec) -> Wanted<'a> {
    let site = at(boxes, uplink.at);
    let clients = site.towards(scenario[uplink.over[0]].to).map(|side| side.device.clone());
    let stem = format!("uplink{n}");
    let place = Place {
        top: top(&stem),
        uplink: format!("satellite = {}\n", list(clients.into_iter())),
        engine: format!("device = \"{DEVICE}\"\n"),
        ..Place::default()
    };
    Wanted { name: &uplink.name, site, stem, text: uplink_file(scenario, uplink, &place) }
}

/// Writes a file that only this user may read.
fn write_private(path: &Path, text: &str) -> Result<(), Failure> {
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| Failure::broken(format!("{}: {error}", path.display())))
}
