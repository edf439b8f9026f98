//! Builds the gateway's parts from the file's tables.

use std::net::SocketAddr;
use std::path::Path;
use std::str::FromStr;

use crate::settings::{
    GatewayFile, LinkTable, RelayTable, ShapeTable, SplitTable, TakenTable, TunnelTable, UplinkTable,
};
use crate::tunnel::{KeyError, PrivateKey, TunnelConfig};
use crate::{
    ClientAddress, Fallback, Gateway, Instance, KeyFileError, LinkShape, Policy, RelayConfig, RelayGateway, Rules,
    Satellite, SplitConfig, SplitShape, UplinkConfig, UplinkGateway, congestion_controls, has_congestion,
    last_endpoint, read_key,
};
use bentpipe_engine::slacp::classify::HostAddress;
use bentpipe_engine::units::Bytes;
use bentpipe_io::{LinkPortConfig, TrainTun};

use super::failure::Failure;

/// The tunnel's table; only `uplink` has none.
pub(super) fn table(file: &GatewayFile) -> &TunnelTable {
    file.tunnel.as_ref().expect("shapes with two gateways have a tunnel")
}

pub(super) fn tunnel(file: &GatewayFile) -> Result<TunnelConfig, Failure> {
    let table = table(file);
    let private: PrivateKey = secret(&table.private_key)?;
    let preshared = table.preshared_key.as_deref().map(secret).transpose()?;
    let peer = table.peer_key.parse().map_err(|error| Failure::usage(format!("tunnel.peer_key: {error}"), None))?;
    if private.public() == peer {
        let message = "tunnel.peer_key is the public key of this box itself";
        return Err(Failure::usage(message, Some("each box needs the other's public key")));
    }
    Ok(TunnelConfig {
        preshared,
        last_endpoint: last_endpoint(&table.state, &peer),
        keepalive: table.keepalive,
        dead_after: table.dead_after,
        ..TunnelConfig::new(private, peer, table.peer)
    })
}

/// The key in a file that only its owner may read.
fn secret<K: FromStr<Err = KeyError>>(path: &Path) -> Result<K, Failure> {
    read_key(path).map_err(|error| {
        let help = match &error {
            KeyFileError::Unreadable { .. } => {
                "`keygen` writes one; it must belong to the user that the gateway runs as"
            }
            KeyFileError::Open { .. } => "only its owner may read it: chmod 600",
            KeyFileError::Key { .. } => "`keygen` writes such a file",
        };
        Failure::usage(error.to_string(), Some(help))
    })
}

pub(super) fn satellite(file: &GatewayFile) -> Satellite {
    Satellite {
        rate: file.satellite.rate,
        round_trip: file.satellite.round_trip,
        path_mtu: table(file).mtu,
        over_ipv6: table(file).listen.is_ipv6(),
        reordering: file.satellite.reordering,
        shared: file.satellite.shared,
    }
}

/// What the gateway's things in the kernel are called.
pub(super) fn instance(file: &GatewayFile) -> Instance {
    Instance::new(&file.name)
}

/// Whom the file lets reach whom.
fn policy(file: &GatewayFile) -> Policy {
    let taken = match &file.shape {
        ShapeTable::Split(table) => Some(&table.taken),
        ShapeTable::Uplink(table) => Some(&table.taken),
        ShapeTable::Relay(table) => Some(&table.taken),
        ShapeTable::Link(_) => None,
    };
    Policy {
        allow: taken.map(|taken| taken.allow.clone()).unwrap_or_default(),
        deny: taken.map(|taken| taken.deny.clone()).unwrap_or_default(),
        sources: file.tunnel.as_ref().and_then(|tunnel| tunnel.peer_prefixes.clone()),
    }
}

pub(super) fn rules(file: &GatewayFile) -> Rules {
    match &file.shape {
        ShapeTable::Split(table) => {
            let (capture, ports) = (table.taken.interfaces.clone(), table.taken.ports.clone());
            Rules::Split { capture, port: table.port, ports, refuse: !table.direct_without_peer }
        }
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

/// The TPROXY addresses for both IP versions.
fn everywhere(port: u16) -> Vec<SocketAddr> {
    vec![([0; 4], port).into(), ([0; 16], port).into()]
}

fn client_address(taken: &TakenTable) -> ClientAddress {
    if taken.keep_client_address { ClientAddress::Keep } else { ClientAddress::Replace }
}

fn split_config(file: &GatewayFile, table: &SplitTable) -> SplitConfig {
    let satellite = satellite(file);
    SplitConfig {
        listen: if table.taken.interfaces.is_empty() { Vec::new() } else { everywhere(table.port) },
        client_address: client_address(&table.taken),
        fallback: if table.direct_without_peer { Fallback::Direct } else { Fallback::Refuse },
        window: satellite.window(),
        max_packet: satellite.max_packet(),
        max_streams: table.taken.max_streams,
        budget: table.taken.memory.get(),
        policy: policy(file),
    }
}

pub(super) fn split(file: &GatewayFile, table: &SplitTable) -> SplitShape {
    SplitShape::new(split_config(file, table))
}

/// Changes what can be changed without touching connections; returns a
/// description.
pub(super) fn reload_split(gateway: &mut Gateway<SplitShape>, file: &GatewayFile) -> &'static str {
    let ShapeTable::Split(table) = &file.shape else { return NOTHING };
    gateway.shape_mut().reconfigure(&split_config(file, table));
    "client_address, without_peer, allow, deny and peer_prefixes have been updated"
}

/// As [`reload_split`].
pub(super) fn reload_link(gateway: &mut Gateway<LinkShape>, file: &GatewayFile) -> &'static str {
    if !matches!(file.shape, ShapeTable::Link(_)) {
        return NOTHING;
    }
    gateway.shape_mut().set_policy(policy(file));
    "peer_prefixes has been updated"
}

const NOTHING: &str = "this shape has no setting that changes while it runs";
const ONE_BOX: &str = "client_address, allow and deny have been updated";

/// True if a change takes effect only at the next start.
pub(super) fn waits(running: &GatewayFile, read: &GatewayFile) -> bool {
    let without_what_is_changed = |file: &GatewayFile| {
        let mut file = file.clone();
        let taken = match &mut file.shape {
            ShapeTable::Split(table) => {
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
        if let Some(tunnel) = &mut file.tunnel {
            tunnel.peer_prefixes = None;
        }
        file
    };
    without_what_is_changed(running) != without_what_is_changed(read)
}

fn uplink_config(file: &GatewayFile, table: &UplinkTable) -> UplinkConfig {
    UplinkConfig {
        tcp: table.tcp,
        window: table.window.map(Bytes::get),
        rate: file.satellite.rate,
        round_trip: file.satellite.round_trip,
        mtu: table.mtu,
        early_accept: table.early_accept,
        max_streams: table.taken.max_streams,
        memory: table.taken.memory.get(),
    }
}

/// The gateway with its device. Failed optional steps are reported; the rest
/// works.
pub(super) fn uplink(file: &GatewayFile, table: &UplinkTable) -> Result<UplinkGateway, Failure> {
    let address = client_address(&table.taken);
    let made = UplinkGateway::uplink(&instance(file), &table.device, uplink_config(file, table), address);
    let (mut gateway, lacks) =
        made.map_err(|error| Failure::broken(format!("the gateway cannot start with {}: {error}", table.device)))?;
    lacks.iter().for_each(|lack| eprintln!("warning: {lack}"));
    gateway.set_policy(policy(file));
    Ok(gateway)
}

/// As [`reload_split`].
pub(super) fn reload_uplink(gateway: &mut UplinkGateway, file: &GatewayFile) -> &'static str {
    let ShapeTable::Uplink(table) = &file.shape else { return NOTHING };
    gateway.set_policy(policy(file));
    gateway.set_client_address(client_address(&table.taken));
    ONE_BOX
}

/// Kernel features that the settings need and this machine lacks.
pub(super) fn check(path: &Path, file: &GatewayFile) -> Result<(), Failure> {
    let ShapeTable::Relay(table) = &file.shape else { return Ok(()) };
    let name = &table.congestion;
    match has_congestion(name) {
        Ok(true) => return Ok(()),
        // Whoever may not use it may still read which there are.
        Err(_) if congestion_controls().contains(name) => return Ok(()),
        _ => {}
    }
    let text = std::fs::read_to_string(path).map_err(Failure::broken)?;
    let message = format!("this kernel has no congestion control `{name}`");
    let expected = format!("one of {}; see `bentpipe doctor`", congestion_controls().join(", "));
    let path = path.display().to_string();
    Err(Failure::Settings(GatewayFile::mistake(&text, &path, "uplink.congestion", message, expected)))
}

/// The gateway with its listeners.
pub(super) fn relay(file: &GatewayFile, table: &RelayTable) -> Result<RelayGateway, Failure> {
    let made = RelayGateway::relay(RelayConfig {
        listen: everywhere(table.port),
        congestion: table.congestion.clone(),
        rate: file.satellite.rate,
        client_address: client_address(&table.taken),
        max_streams: table.taken.max_streams,
        memory: table.taken.memory.get(),
        mark: instance(file).sent(),
        policy: policy(file),
    });
    made.map_err(|error| Failure::broken(format!("the gateway cannot listen: {error}")))
}

/// As [`reload_split`].
pub(super) fn reload_relay(gateway: &mut RelayGateway, file: &GatewayFile) -> &'static str {
    let ShapeTable::Relay(table) = &file.shape else { return NOTHING };
    gateway.set_policy(policy(file));
    gateway.set_client_address(client_address(&table.taken));
    ONE_BOX
}

/// The layer of `link`. The box that names its peer is the terminal: the hosts that take turns are those behind it.
pub(super) fn packets(file: &GatewayFile) -> LinkPortConfig {
    let is_terminal = file.tunnel.as_ref().is_some_and(|tunnel| tunnel.peer.is_some());
    satellite(file).for_packets(if is_terminal { HostAddress::Source } else { HostAddress::Destination })
}

pub(super) fn link(file: &GatewayFile, table: &LinkTable) -> Result<LinkShape, Failure> {
    let mtu = satellite(file).max_packet();
    let tun = TrainTun::with_addresses(&table.device, &table.addresses, mtu);
    let tun = tun.map_err(|error| Failure::broken(format!("the device {}: {error}", table.device)))?;
    let mut shape = LinkShape::new(tun);
    shape.set_policy(policy(file));
    Ok(shape)
}
