//! Builds the parts of a gateway from the tables in its file.

use std::net::SocketAddr;
use std::path::Path;
use std::str::FromStr;

use crate::key_file::read_key;
use crate::relay::has_congestion;
use crate::settings::{
    GatewayFile, LinkTable, PeerTable, RelayTable, ShapeTable, SplitTable, TakenTable, TunnelTable, UplinkTable,
};
use crate::sockets;
use crate::tunnel::KeyError;
use crate::{
    Carries, ClientAddress, Fallback, Instance, KeyFileError, LinkShape, Policy, RelayConfig, RelayGateway, Rules,
    Satellite, SplitConfig, SplitShape, UplinkConfig, UplinkGateway, congestion_controls, max_packet,
};
use bentpipe_engine::gateway::UplinkSender;
use bentpipe_engine::units::{Bytes, Duration, Rate};
use bentpipe_io::TrainTun;
use bentpipe_language::text;
use socket2::Domain;

use super::failure::Failure;
use crate::log::note;

/// The tunnel's table. Every shape except `uplink` has one.
pub(super) fn table(file: &GatewayFile) -> &TunnelTable {
    file.tunnel.as_ref().expect("shapes with two gateways have a tunnel")
}

/// Reads the key from a file that only its owner may read. `key` is the key in the settings at `path` that names the
/// file.
pub(super) fn secret<K: FromStr<Err = KeyError>>(path: &Path, key: &str, file: &Path) -> Result<K, Failure> {
    match read_key(file) {
        Ok(read) => Ok(read),
        Err(error) => Err(no_key(path, key, &error)?),
    }
}

/// The error for a key file, with the place of its name in the settings, which are read again for that.
pub(super) fn no_key(path: &Path, key: &str, error: &KeyFileError) -> Result<Failure, Failure> {
    let expected = match error {
        KeyFileError::Unreadable { .. } => {
            "a file that `keygen` has written, which belongs to the user that the gateway runs as"
        }
        KeyFileError::Open { .. } => "a file that only its owner may read: chmod 600",
        KeyFileError::Key { .. } => "a file that `keygen` has written",
    };
    mistake(path, key, error.to_string(), expected.to_owned())
}

/// True if a path names a pipe, or anything else that is no regular file. Opening a pipe waits for its writer, which a running
/// gateway must not.
pub(super) fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| !meta.is_file())
}

/// The link to a peer with this rate and round trip, as seen by this end.
pub(super) fn satellite(file: &GatewayFile, rate: Rate, round_trip: Duration) -> Satellite {
    Satellite {
        rate,
        round_trip,
        path_mtu: table(file).mtu,
        over_ipv6: table(file).listen.is_ipv6(),
        reordering: file.satellite.reordering,
        shared: file.satellite.shared,
    }
}

/// The names of the gateway's objects in the kernel.
pub(super) fn instance(file: &GatewayFile) -> Instance {
    Instance::new(&file.name)
}

/// The policy in the file.
fn policy(file: &GatewayFile) -> Policy {
    let taken = match &file.shape {
        ShapeTable::Split(table) | ShapeTable::Both(table, _) => Some(&table.taken),
        ShapeTable::Uplink(table) => Some(&table.taken),
        ShapeTable::Relay(table) => Some(&table.taken),
        ShapeTable::Link(_) => None,
    };
    Policy {
        allow: taken.map(|taken| taken.allow.clone()).unwrap_or_default(),
        deny: taken.map(|taken| taken.deny.clone()).unwrap_or_default(),
    }
}

pub(super) fn rules(file: &GatewayFile) -> Rules {
    let of_split = |table: &SplitTable, link: Option<&LinkTable>| {
        let (capture, ports) = (table.taken.interfaces.clone(), table.taken.ports.clone());
        let behind = |peer: &PeerTable| peer.prefixes.clone().unwrap_or_default();
        let peers = file.peers.iter().filter(|peer| peer.carries == Carries::Streams);
        let to = file.is_hub().then(|| peers.flat_map(behind).collect());
        let device = link.map(|link| link.device.clone());
        Rules::Split { capture, port: table.port, ports, refuse: !table.direct_without_peer, to, device }
    };
    match &file.shape {
        ShapeTable::Split(table) => of_split(table, None),
        ShapeTable::Both(table, link) => of_split(table, Some(link)),
        ShapeTable::Link(table) => Rules::Link { device: table.device.clone() },
        ShapeTable::Uplink(table) => Rules::Uplink {
            satellite: table.taken.interfaces.clone(),
            device: table.device.clone(),
            ports: table.taken.ports.clone(),
        },
        ShapeTable::Relay(table) => Rules::Relay {
            satellite: table.taken.interfaces.clone(),
            port: table.port,
            ports: table.taken.ports.clone(),
        },
    }
}

/// The TPROXY addresses for the IP versions that this machine has.
fn everywhere(port: u16) -> Vec<SocketAddr> {
    let all: [SocketAddr; 2] = [([0; 4], port).into(), ([0; 16], port).into()];
    all.into_iter().filter(|at| sockets::has_family(Domain::for_address(*at))).collect()
}

fn client_address(taken: &TakenTable) -> ClientAddress {
    if taken.keep_client_address { ClientAddress::Keep } else { ClientAddress::Replace }
}

fn split_config(file: &GatewayFile, table: &SplitTable) -> SplitConfig {
    // The window of a stream suits the fastest peer.
    let windows = file.peers.iter().map(|peer| satellite(file, peer.rate, peer.round_trip).window());
    SplitConfig {
        listen: if table.taken.interfaces.is_empty() { Vec::new() } else { everywhere(table.port) },
        client_address: client_address(&table.taken),
        fallback: if table.direct_without_peer { Fallback::Direct } else { Fallback::Refuse },
        window: windows.max().unwrap_or(1 << 20),
        max_streams: table.taken.max_streams,
        budget: table.taken.memory.get(),
        policy: policy(file),
    }
}

pub(super) fn split(file: &GatewayFile, table: &SplitTable) -> SplitShape {
    SplitShape::new(split_config(file, table))
}

/// A warning if `memory` is too small for a stream of `split` to fill a lossy link. Before it runs, an end knows only
/// its own rate on the link; the far end warns about its own.
pub(super) fn memory_hint(file: &GatewayFile) -> Option<String> {
    let (ShapeTable::Split(table) | ShapeTable::Both(table, _)) = &file.shape else { return None };
    let streams = file.peers.iter().filter(|peer| peer.carries == Carries::Streams);
    let wanted = streams.map(|peer| satellite(file, peer.rate, peer.round_trip).memory()).max()?;
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    (table.taken.memory.get() < wanted).then(|| {
        let has = mib(table.taken.memory.get());
        format!(
            "`split.memory` is {has} MiB: on a lossy link a connection needs {} MiB on both boxes to fill it",
            mib(wanted)
        )
    })
}

/// Applies the settings that can change without affecting connections. Returns a description.
pub(super) fn reload_split(shape: &mut SplitShape, file: &GatewayFile) -> &'static str {
    let (ShapeTable::Split(table) | ShapeTable::Both(table, _)) = &file.shape else { return "" };
    shape.reconfigure(&split_config(file, table));
    match file.is_hub() {
        true => "satellite.rate, client_address, allow and deny are as in the file",
        false => "client_address, without_peer, allow, deny and peer_prefixes are as in the file",
    }
}

const ONE_BOX: &str = "client_address, allow and deny are as in the file";

/// Why nothing of the file can be applied to a running gateway: it is for another kind of gateway. `None` if it is for the same kind.
pub(super) fn other_kind(running: &GatewayFile, read: &GatewayFile) -> Option<&'static str> {
    match (running.is_hub(), read.is_hub()) {
        (false, true) => Some("the file has `[[peers]]`, and this gateway has one peer or none"),
        (true, false) => Some("the file has no `[[peers]]`, and this gateway is a hub"),
        _ => {
            let [running, read] = [running, read].map(|file| std::mem::discriminant(&file.shape));
            (running != read).then_some("the file has another shape")
        }
    }
}

/// True if a change takes effect only at the next start. Both files are for the same kind of gateway.
pub(super) fn waits(running: &GatewayFile, read: &GatewayFile) -> bool {
    let without_what_is_changed = |file: &GatewayFile| {
        let mut file = file.clone();
        let taken = match &mut file.shape {
            ShapeTable::Split(table) | ShapeTable::Both(table, _) => {
                table.direct_without_peer = true;
                Some(&mut table.taken)
            }
            ShapeTable::Uplink(table) => Some(&mut table.taken),
            ShapeTable::Relay(table) => Some(&mut table.taken),
            ShapeTable::Link(_) => None,
        };
        if let Some(taken) = taken {
            (taken.keep_client_address, taken.allow, taken.deny) = (true, Vec::new(), Vec::new());
        }
        if file.is_hub() {
            file.peers.clear();
            // The rest of the table is for the link layers of all peers.
            (file.satellite.rate, file.satellite.round_trip) = (running.satellite.rate, running.satellite.round_trip);
        }
        for peer in &mut file.peers {
            (peer.prefixes, peer.advice, peer.preshared_key) = (None, None, None);
        }
        if let ShapeTable::Link(link) | ShapeTable::Both(_, link) = &mut file.shape {
            link.advice = None;
        }
        file
    };
    without_what_is_changed(running) != without_what_is_changed(read)
}

fn uplink_config(file: &GatewayFile, table: &UplinkTable) -> UplinkConfig {
    UplinkConfig {
        sender: UplinkSender {
            tcp: table.tcp,
            window: table.window.map(Bytes::get),
            rate: file.satellite.rate,
            round_trip: file.satellite.round_trip,
            mtu: table.mtu,
        },
        early_accept: table.early_accept,
        max_streams: table.taken.max_streams,
        memory: table.taken.memory.get(),
    }
}

/// The gateway with its device. Optional steps that failed are reported; the gateway works without them.
pub(super) fn uplink(file: &GatewayFile, table: &UplinkTable) -> Result<UplinkGateway, Failure> {
    let address = client_address(&table.taken);
    let made = UplinkGateway::uplink(&instance(file), &table.device, uplink_config(file, table), address);
    let (mut gateway, lacks) =
        made.map_err(|error| Failure::broken(format!("the gateway cannot start with {}: {error}", table.device)))?;
    lacks.iter().for_each(|lack| note!("warning: {lack}"));
    gateway.set_policy(policy(file));
    Ok(gateway)
}

/// Applies the settings that can change, like [`reload_split`].
pub(super) fn reload_uplink(gateway: &mut UplinkGateway, file: &GatewayFile) -> String {
    let ShapeTable::Uplink(table) = &file.shape else { return String::new() };
    gateway.set_policy(policy(file));
    gateway.set_client_address(client_address(&table.taken));
    ONE_BOX.to_owned()
}

/// Max length of a socket's path: `sun_path` in unix(7), without its final zero byte.
const MAX_SOCKET: usize = 107;

/// Fails if the settings need what this machine lacks or cannot do.
pub(super) fn check(path: &Path, file: &GatewayFile) -> Result<(), Failure> {
    let length = file.control.as_os_str().len();
    if length > MAX_SOCKET {
        let message = format!("the path of this socket has {length} bytes: {}", file.control.display());
        let expected = format!("at most {MAX_SOCKET} bytes, with the folder of this file");
        return Err(mistake(path, "control", message, expected)?);
    }
    let ShapeTable::Relay(table) = &file.shape else { return Ok(()) };
    let name = &table.congestion;
    match has_congestion(name) {
        Ok(true) => return Ok(()),
        // Even a user who may not use the control can read the list.
        Err(_) if congestion_controls().contains(name) => return Ok(()),
        _ => {}
    }
    let message = format!("this kernel has no congestion control `{name}`");
    let expected = format!("one of {}; see `bentpipe doctor`", congestion_controls().join(", "));
    Err(mistake(path, "uplink.congestion", message, expected)?)
}

/// The error for a value that the machine rejects, with the place of its key in the file.
pub(super) fn mistake(path: &Path, key: &str, message: String, expected: String) -> Result<Failure, Failure> {
    let text = text::read(path).map_err(Failure::broken)?;
    Ok(Failure::Settings(GatewayFile::mistake(&text, &path.display().to_string(), key, message, expected)))
}

/// The gateway with its listeners.
pub(super) fn relay(file: &GatewayFile, table: &RelayTable) -> Result<RelayGateway, Failure> {
    let made = RelayGateway::relay(RelayConfig {
        listen: everywhere(table.port),
        congestion: table.congestion.clone(),
        rate: file.satellite.rate,
        round_trip: file.satellite.round_trip,
        client_address: client_address(&table.taken),
        max_streams: table.taken.max_streams,
        memory: table.taken.memory.get(),
        mark: instance(file).sent(),
        policy: policy(file),
    });
    made.map_err(|error| Failure::broken(format!("the gateway cannot listen: {error}")))
}

/// Applies the settings that can change, like [`reload_split`].
pub(super) fn reload_relay(gateway: &mut RelayGateway, file: &GatewayFile) -> String {
    let ShapeTable::Relay(table) = &file.shape else { return String::new() };
    gateway.set_policy(policy(file));
    gateway.set_client_address(client_address(&table.taken));
    ONE_BOX.to_owned()
}

pub(super) fn link(file: &GatewayFile, table: &LinkTable) -> Result<LinkShape, Failure> {
    let mtu = max_packet(self::table(file).mtu, self::table(file).listen.is_ipv6());
    let tun = TrainTun::with_addresses(&table.device, &table.addresses, mtu);
    let tun = tun.map_err(|error| Failure::broken(format!("the device {}: {error}", table.device)))?;
    Ok(LinkShape::new(tun, table.memory.get()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tunnel::PrivateKey;

    /// A hub's `rate` and `round_trip` are its peers' where these have none of their own, and a reload changes both.
    #[test]
    fn what_waits_for_the_next_start() {
        let key = PrivateKey::generate().public().to_string();
        let hub = |satellite: &str| {
            format!(
                "name = \"hub\"\n[tunnel]\nprivate_key = \"key\"\n[satellite]\n{satellite}\n[link]\naddresses = [\"10.8.0.1/24\"]\n\
                 [[peers]]\nname = \"a\"\nkey = \"{key}\"\nprefixes = [\"10.1.0.0/24\"]\n"
            )
        };
        let alone = |satellite: &str| {
            format!(
                "name = \"near\"\n[tunnel]\nprivate_key = \"key\"\npeer_key = \"{key}\"\n[satellite]\n{satellite}\n[split]\n"
            )
        };
        let before = "rate = \"1 Mbit/s\"\nround_trip = \"600 ms\"";
        for (after, of_hub, of_one) in [
            (before, false, false),
            ("rate = \"2 Mbit/s\"\nround_trip = \"600 ms\"", false, true),
            ("rate = \"1 Mbit/s\"\nround_trip = \"700 ms\"", false, true),
            ("rate = \"1 Mbit/s\"\nround_trip = \"600 ms\"\nshared = true", true, true),
        ] {
            let read = |text: String| GatewayFile::parse(&text, "file").unwrap_or_else(|errors| panic!("{errors}"));
            assert_eq!(waits(&read(hub(before)), &read(hub(after))), of_hub, "{after}");
            assert_eq!(waits(&read(alone(before)), &read(alone(after))), of_one, "{after}");
        }
    }

    /// A reload applies nothing of a file for another kind of gateway.
    #[test]
    fn what_a_reload_cannot_change() {
        let key = PrivateKey::generate().public().to_string();
        let two = |tunnel: &str, rest: &str| format!("[tunnel]\nprivate_key = \"key\"\n{tunnel}{rest}");
        let peer = format!("peer_key = \"{key}\"\n");
        let peers =
            |shape: &str| format!("[[peers]]\nname = \"a\"\nkey = \"{key}\"\nprefixes = [\"10.1.0.0/24\"]\n{shape}");
        let link = "[link]\naddresses = [\"10.8.0.1/24\"]\n";
        let kinds = [
            two(&peer, "[split]\n"),
            two(&peer, link),
            two("", &format!("[split]\n{}", peers(""))),
            two("", &format!("[split]\n{link}{}", peers("shape = \"split\"\n"))),
            "[uplink]\nsatellite = [\"sat0\"]\n".to_owned(),
            "[uplink]\nsatellite = [\"sat0\"]\nsender = \"kernel\"\n".to_owned(),
        ];
        let files = kinds.map(|kind| {
            let text = format!("name = \"x\"\n[satellite]\nrate = \"1 Mbit/s\"\nround_trip = \"600 ms\"\n{kind}");
            GatewayFile::parse(&text, "file").unwrap_or_else(|errors| panic!("{errors}"))
        });
        for (n, running) in files.iter().enumerate() {
            for (m, read) in files.iter().enumerate() {
                assert_eq!(other_kind(running, read).is_none(), n == m, "{n} {m}");
            }
        }
    }
}
