//! A flow that ends at the box of an `uplink` and continues from it.

use std::sync::Arc;

use bentpipe_engine::tcp::TcpConfig;
use bentpipe_language::tcp::TcpOverrides;
use bentpipe_language::tcp::profile::profile;

use super::PROFILE;
use crate::scenario::model::{FlowKind, FlowSpec, Met, Scenario, SenderOf, Split, UplinkSpec};

/// The names of a leg's profile and variant.
type Names = [String; 2];

/// The box's end of the leg to a server: Linux's, which accepts as much as the box holds for the client.
fn to_server(box_: &UplinkSpec) -> (TcpConfig, Names) {
    let profile = profile(PROFILE).expect("the table has it");
    let config = profile.config();
    let held = u32::try_from(box_.send_buffer()).unwrap_or(u32::MAX);
    let config = TcpConfig { receive_buffer: config.receive_buffer.min(held), ..config };
    (config, [PROFILE.to_owned(), profile.default_variant.to_owned()])
}

/// The box's end of the leg to a client that accepts segments of `peer_mss`.
fn to_client(box_: &UplinkSpec, peer_mss: u16) -> (TcpConfig, Names) {
    let names = match &box_.by {
        SenderOf::Engine { variant, .. } => ["rfc".to_owned(), variant.clone()],
        SenderOf::Kernel { congestion } => {
            let row = UplinkSpec::KERNEL.iter().find(|(name, _)| name == congestion).map_or("", |(_, row)| row);
            [PROFILE.to_owned(), row.to_owned()]
        }
    };
    (box_.settings(peer_mss), names)
}

pub(super) fn cross(scenario: &Scenario, flow: &mut FlowSpec, number: usize, client_opens: bool) {
    let box_ = &scenario.gateways.uplinks[number];
    let [towards, from] = box_.over;
    let cut = |route: &Option<Vec<_>>, ends: bool, over| {
        let Some(route) = route else { return (None, None) };
        let at = route.iter().position(|&link| link == over).expect("the path crosses the box");
        // The link towards the clients begins at the box, and the link from them ends there.
        let (first, rest) = route.split_at(at + usize::from(ends));
        (Some(first.to_vec()), Some(rest.to_vec()))
    };
    let (there, back) = if client_opens { (from, towards) } else { (towards, from) };
    let (route, onward) = cut(&flow.route, client_opens, there);
    let (return_onward, return_route) = cut(&flow.return_route, !client_opens, back);
    let FlowKind::Tcp(tcp) = &mut flow.kind else { return };
    let tcp = Arc::make_mut(tcp);
    let (near, (far, [profile_name, variant_name])) = if client_opens {
        (to_client(box_, tcp.sender.mss).0, to_server(box_))
    } else {
        (to_server(box_).0, to_client(box_, tcp.receiver.mss))
    };
    tcp.splits = vec![Split {
        at: box_.at,
        gateway: Some(Met::Uplink { number, client_opens }),
        stp: None,
        sender: far,
        receiver: tcp.receiver,
        variant_name,
        profile_name,
        route: onward,
        return_route: return_onward,
        explicit: TcpOverrides::default(),
    }];
    tcp.receiver = near;
    (flow.route, flow.return_route) = (route, return_route);
}
