//! The endpoint of a carrier over the satellite link, with the link layer that the engine derives from the link.

use bentpipe_engine::gateway::{INTEGRITY, Layer, Satellite};
use bentpipe_engine::slacp::classify::{FlowHash, HostAddress};
use bentpipe_io::LinkEndpointConfig;

fn endpoint(satellite: &Satellite, layer: Layer, flows: Option<FlowHash>) -> LinkEndpointConfig {
    let Layer { config: layer, rules, default_channel, compresses } = layer;
    let max_packet = satellite.max_packet();
    LinkEndpointConfig { layer, rules, default_channel, flows, max_packet, compresses, integrity: INTEGRITY }
}

/// The endpoint for messages of streams.
pub fn for_streams(satellite: &Satellite) -> LinkEndpointConfig {
    endpoint(satellite, satellite.for_streams(), None)
}

/// The endpoint for IP packets. `hosts`: whether the hosts that take turns are behind this box or behind the other one.
///
/// # Panics
/// Panics if the system has no entropy.
pub fn for_packets(satellite: &Satellite, hosts: HostAddress) -> LinkEndpointConfig {
    let key = [(); 2].map(|()| getrandom::u64().expect("the system has entropy"));
    endpoint(satellite, satellite.for_packets(), Some(FlowHash { key, host: hosts }))
}

#[cfg(test)]
mod tests;
