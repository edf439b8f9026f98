//! From the file's tables to the gateway's parts.

use std::net::SocketAddr;

use bentpipe_io::Tun;
use bentpipe_io::gateway::{ClientAddress, Fallback, Gateway, LinkShape, Rules, Satellite, SplitConfig, SplitShape};
use bentpipe_io::tunnel::{PrivateKey, TunnelConfig};
use bentpipe_study::gateway::{GatewayFile, LinkTable, ShapeTable, SplitTable};

use crate::failure::Failure;

pub(super) fn tunnel(file: &GatewayFile) -> Result<TunnelConfig, Failure> {
    let table = &file.tunnel;
    let path = table.private_key.display();
    let text = std::fs::read_to_string(&table.private_key).map_err(|error| {
        Failure::usage(format!("{path}: {error}"), Some("bentpipe gateway keygen writes one".into()))
    })?;
    let private: PrivateKey = text.parse().map_err(|error| Failure::usage(format!("{path}: {error}"), None))?;
    let peer = table.peer_key.parse().map_err(|error| Failure::usage(format!("tunnel.peer_key: {error}"), None))?;
    if private.public() == peer {
        let message = "tunnel.peer_key belongs to this end's own private key";
        return Err(Failure::usage(message, Some("give each end the other's public key".into())));
    }
    Ok(TunnelConfig { private, peer, endpoint: table.peer, keepalive: table.keepalive, dead_after: table.dead_after })
}

pub(super) fn satellite(file: &GatewayFile) -> Satellite {
    Satellite {
        rate: file.satellite.rate,
        round_trip: file.satellite.round_trip,
        path_mtu: file.tunnel.mtu,
        over_ipv6: file.tunnel.listen.is_ipv6(),
        reordering: file.satellite.reordering,
    }
}

pub(super) fn rules(file: &GatewayFile) -> Rules {
    match &file.shape {
        ShapeTable::Split(table) => {
            Rules::Split { capture: table.capture.clone(), port: table.port, ports: table.ports.clone() }
        }
        ShapeTable::Link(table) => Rules::Link { device: table.device.clone() },
    }
}

fn split_config(file: &GatewayFile, table: &SplitTable) -> SplitConfig {
    let satellite = satellite(file);
    let everywhere = [SocketAddr::from(([0; 4], table.port)), SocketAddr::from(([0; 16], table.port))];
    SplitConfig {
        listen: if table.capture.is_empty() { Vec::new() } else { everywhere.into() },
        client_address: if table.keep_client_address { ClientAddress::Keep } else { ClientAddress::Replace },
        fallback: if table.direct_without_peer { Fallback::Direct } else { Fallback::Refuse },
        window: satellite.window(),
        most_packet: satellite.most_packet(),
        most_streams: table.most_streams,
        budget: table.memory.get(),
    }
}

pub(super) fn split(file: &GatewayFile, table: &SplitTable) -> SplitShape {
    SplitShape::new(split_config(file, table))
}

/// Changes what can be changed without touching connections; answers what that is.
pub(super) fn reload_split(gateway: &mut Gateway<SplitShape>, file: &GatewayFile) -> &'static str {
    let ShapeTable::Split(table) = &file.shape else { return NOTHING };
    gateway.shape_mut().reconfigure(&split_config(file, table));
    "client_address and without_peer hold as they stand now"
}

/// Of a packet link nothing can be changed while it runs.
pub(super) fn reload_link(_: &mut Gateway<LinkShape>, _: &GatewayFile) -> &'static str {
    NOTHING
}

const NOTHING: &str = "nothing of this shape changes while it runs";

/// Whether something has changed that waits for the next start.
pub(super) fn waits(running: &GatewayFile, read: &GatewayFile) -> bool {
    let without_what_is_changed = |file: &GatewayFile| {
        let mut file = file.clone();
        if let ShapeTable::Split(table) = &mut file.shape {
            (table.keep_client_address, table.direct_without_peer) = (true, true);
        }
        file
    };
    without_what_is_changed(running) != without_what_is_changed(read)
}

pub(super) fn link(file: &GatewayFile, table: &LinkTable) -> Result<LinkShape, Failure> {
    let mtu = satellite(file).most_packet();
    let tun = Tun::with_addresses(&table.device, &table.addresses, mtu);
    let tun = tun.map_err(|error| Failure::broken(format!("the device {}: {error}", table.device)))?;
    Ok(LinkShape::new(tun))
}
