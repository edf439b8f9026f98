//! Builds the gateway's parts from the file's tables.

use std::net::SocketAddr;
use std::path::Path;

use bentpipe_engine::units::Bytes;
use bentpipe_gateway::settings::{
    GatewayFile, LinkTable, RelayTable, ShapeTable, SplitTable, TakenTable, TunnelTable, UplinkTable,
};
use bentpipe_gateway::tunnel::{PrivateKey, TunnelConfig};
use bentpipe_gateway::{
    ClientAddress, Fallback, Gateway, LinkShape, RelayConfig, RelayGateway, Rules, Satellite, SplitConfig, SplitShape,
    UplinkConfig, UplinkGateway, congestion_controls, has_congestion,
};
use bentpipe_io::TrainTun;

use crate::failure::Failure;

/// The tunnel's table; only `uplink` has none.
pub(super) fn table(file: &GatewayFile) -> &TunnelTable {
    file.tunnel.as_ref().expect("shapes with two gateways have a tunnel")
}

pub(super) fn tunnel(file: &GatewayFile) -> Result<TunnelConfig, Failure> {
    let table = table(file);
    let path = table.private_key.display();
    let text = std::fs::read_to_string(&table.private_key).map_err(|error| {
        Failure::usage(format!("{path}: {error}"), Some("`bentpipe gateway keygen` writes one".into()))
    })?;
    let private: PrivateKey = text.parse().map_err(|error| Failure::usage(format!("{path}: {error}"), None))?;
    let peer = table.peer_key.parse().map_err(|error| Failure::usage(format!("tunnel.peer_key: {error}"), None))?;
    if private.public() == peer {
        let message = "tunnel.peer_key is this gateway's own public key";
        return Err(Failure::usage(message, Some("each gateway needs the other's public key".into())));
    }
    Ok(TunnelConfig { private, peer, endpoint: table.peer, keepalive: table.keepalive, dead_after: table.dead_after })
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

pub(super) fn rules(file: &GatewayFile) -> Rules {
    match &file.shape {
        ShapeTable::Split(table) => {
            Rules::Split { capture: table.taken.interfaces.clone(), port: table.port, ports: table.taken.ports.clone() }
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
    "client_address and without_peer have been updated"
}

/// A packet link has nothing that can change while it runs.
pub(super) fn reload_link(_: &mut Gateway<LinkShape>, _: &GatewayFile) -> &'static str {
    NOTHING
}

const NOTHING: &str = "this shape has no setting that changes while it runs";
const ONLY_ADDRESS: &str = "client_address has been updated";

/// True if a change takes effect only at the next start.
pub(super) fn waits(running: &GatewayFile, read: &GatewayFile) -> bool {
    let without_what_is_changed = |file: &GatewayFile| {
        let mut file = file.clone();
        match &mut file.shape {
            ShapeTable::Split(table) => (table.taken.keep_client_address, table.direct_without_peer) = (true, true),
            ShapeTable::Uplink(table) => table.taken.keep_client_address = true,
            ShapeTable::Relay(table) => table.taken.keep_client_address = true,
            ShapeTable::Link(_) => {}
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
    let made = UplinkGateway::uplink(&table.device, uplink_config(file, table), address);
    let (gateway, lacks) =
        made.map_err(|error| Failure::broken(format!("the gateway cannot start with {}: {error}", table.device)))?;
    lacks.iter().for_each(|lack| eprintln!("warning: {lack}"));
    Ok(gateway)
}

/// As [`reload_split`].
pub(super) fn reload_uplink(gateway: &mut UplinkGateway, file: &GatewayFile) -> &'static str {
    let ShapeTable::Uplink(table) = &file.shape else { return NOTHING };
    gateway.set_client_address(client_address(&table.taken));
    ONLY_ADDRESS
}

/// Kernel features that the settings need and this machine lacks.
pub(super) fn check(path: &Path, file: &GatewayFile) -> Result<(), Failure> {
    let ShapeTable::Relay(table) = &file.shape else { return Ok(()) };
    let name = &table.congestion;
    if has_congestion(name).map_err(|error| Failure::broken(format!("congestion control {name}: {error}")))? {
        return Ok(());
    }
    let text = std::fs::read_to_string(path).map_err(Failure::broken)?;
    let message = format!("this kernel has no congestion control `{name}`");
    let expected = format!("one of {}; see `bentpipe doctor`", congestion_controls().join(", "));
    let path = path.display().to_string();
    Err(Failure::Scenario(GatewayFile::mistake(&text, &path, "uplink.congestion", message, expected)))
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
    });
    made.map_err(|error| Failure::broken(format!("the gateway cannot listen at port {}: {error}", table.port)))
}

/// As [`reload_split`].
pub(super) fn reload_relay(gateway: &mut RelayGateway, file: &GatewayFile) -> &'static str {
    let ShapeTable::Relay(table) = &file.shape else { return NOTHING };
    gateway.set_client_address(client_address(&table.taken));
    ONLY_ADDRESS
}

pub(super) fn link(file: &GatewayFile, table: &LinkTable) -> Result<LinkShape, Failure> {
    let mtu = satellite(file).max_packet();
    let tun = TrainTun::with_addresses(&table.device, &table.addresses, mtu);
    let tun = tun.map_err(|error| Failure::broken(format!("the device {}: {error}", table.device)))?;
    Ok(LinkShape::new(tun))
}
