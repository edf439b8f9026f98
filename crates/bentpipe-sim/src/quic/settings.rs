//! A flow's settings for quinn.

use std::sync::Arc;
use std::time::Duration;

use bentpipe_engine::units::Bytes;
use bentpipe_study::scenario::{FlowSpec, QuicFlow, Scenario, Workload};
use bentpipe_study::topology;
use quinn_proto::{
    AckFrequencyConfig, ClientConfig, ConnectionId, Endpoint, EndpointConfig, IdleTimeout, MtuDiscoveryConfig,
    NoneTokenStore, ServerConfig, TransportConfig, VarInt,
};

use super::cipher::{Cover, CoveredClient, CoveredServer};
use super::control;
use super::credentials::Credentials;
use super::gauge::{Gauge, Gauged};
use super::ids::{self, Ids};
use super::peer::{Peer, meet};
use super::scone::{self, Scone};
use super::unpaced::Unpaced;

/// The assumed capacity of a path without a rate.
const NO_RATE: Bytes = Bytes::new(8 << 20);

/// The capacity of the path of a flow's data, in flight and in the bottleneck's queue; the larger of both directions.
fn path_holds(scenario: &Scenario, flow: &FlowSpec) -> Bytes {
    let Ok((there, back)) = topology::flow_paths(scenario, flow) else { return NO_RATE };
    let [there, back] = [there, back].map(|path| topology::facts(scenario, &path, 1500));
    let one = |data: &topology::PathFacts, acks: &topology::PathFacts| {
        let flight = topology::bandwidth_delay_product(data, acks)?.get();
        let queue = data
            .queue
            .zip(data.bottleneck)
            .map_or(flight, |(time, rate)| (time.as_secs_f64() * rate.bits_per_second() as f64 / 8.0) as u64);
        Some(Bytes::new(flight + queue))
    };
    [one(&there, &back), one(&back, &there)].into_iter().flatten().max().unwrap_or(NO_RATE)
}

/// Two hosts before their connection.
pub(super) struct Hosts {
    /// The client, with its configuration.
    pub(super) client: (Peer, ClientConfig),
    pub(super) server: Peer,
}

/// The settings of a flow.
pub(super) struct Settings<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) flow: &'a FlowSpec,
    pub(super) quic: &'a QuicFlow,
    pub(super) seed: u64,
}

impl Settings<'_> {
    /// The hosts of the flow's connection, each with its gauge and its key wrapper.
    pub(super) fn hosts(&self, gauges: [Arc<Gauge>; 2], covers: [Cover; 2]) -> Hosts {
        let credentials = Credentials::new(self.quic.zero_rtt);
        if self.quic.zero_rtt {
            let cover = || Cover { encrypts: true, notes: None };
            let mut earlier = self.pair("earlier", &credentials, Default::default(), [cover(), cover()]);
            let now = super::clock::instant(bentpipe_engine::units::Time::ZERO);
            earlier.client.0.connect(now, earlier.client.1);
            meet(&mut earlier.client.0, &mut earlier.server, now);
        }
        self.pair("", &credentials, gauges, covers)
    }

    fn pair(&self, which: &str, credentials: &Credentials, gauges: [Arc<Gauge>; 2], covers: [Cover; 2]) -> Hosts {
        let [client_transport, server_transport] = gauges.map(|gauge| Arc::new(self.transport(gauge)));
        let [client_cover, server_cover] = covers;
        let inner = credentials.client.clone();
        let crypto =
            if client_cover.is_plain() { inner } else { Arc::new(CoveredClient { inner, cover: client_cover }) };
        let mut client = ClientConfig::new(crypto);
        let first: [u8; 20] = ids::bytes(self.seed, &self.name(which, "first"));
        client.transport_config(client_transport);
        client.token_store(Arc::new(NoneTokenStore));
        client.initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&first)));

        let inner = credentials.server.clone();
        let crypto =
            if server_cover.is_plain() { inner } else { Arc::new(CoveredServer { inner, cover: server_cover }) };
        let mut server = ServerConfig::with_crypto(crypto);
        server.transport_config(server_transport);
        Hosts {
            client: (Peer::new(self.endpoint(which, "client", None), true), client),
            server: Peer::new(self.endpoint(which, "server", Some(server)), false),
        }
    }

    /// The name of a random stream.
    fn name(&self, which: &str, what: &str) -> String {
        format!("flow/{}/quic/{which}{what}", self.flow.name)
    }

    fn endpoint(&self, which: &str, side: &str, server: Option<ServerConfig>) -> Endpoint {
        let prefix = ids::bytes(self.seed, &self.name(which, &format!("{side}-ids")));
        let mut config = EndpointConfig::default();
        config.cid_generator(move || Box::new(Ids::new(prefix)));
        config.rng_seed(Some(ids::bytes(self.seed, &self.name(which, side))));
        config.max_udp_payload_size(self.quic.max_datagram()).expect("at least 1200 bytes");
        Endpoint::new(Arc::new(config), server.map(Arc::new), true, None)
    }

    /// A window in bytes: as configured, or as large as the path needs.
    fn window(&self, set: Option<Bytes>) -> u64 {
        set.unwrap_or_else(|| QuicFlow::window(path_holds(self.scenario, self.flow))).get()
    }

    /// The SCONE state of client and server, if they use it.
    pub(super) fn scone(&self) -> [Option<Scone>; 2] {
        let paths = topology::flow_paths(self.scenario, self.flow).ok().filter(|_| self.quic.scone);
        let Some((there, back)) = paths else { return [None, None] };
        let own = self.window(self.quic.receive_window);
        [there, back].map(|path| Some(Scone::new(scone::advice(self.scenario, &path), own)))
    }

    fn transport(&self, gauge: Arc<Gauge>) -> TransportConfig {
        let quic = self.quic;
        let mut config = TransportConfig::default();
        let [receive, send] = [quic.receive_window, quic.send_window].map(|window| self.window(window));
        let first = if quic.scone { receive.min(Scone::FIRST_WINDOW) } else { receive };
        config.receive_window(VarInt::from_u64(first).unwrap_or(VarInt::MAX));
        config.stream_receive_window(VarInt::from_u64(receive).unwrap_or(VarInt::MAX));
        config.send_window(send);
        let streams = match quic.workload {
            // Each request has its own stream. A response ends it, so one stream is open at a time.
            Workload::RequestResponse { .. } => 100,
            _ => u32::from(quic.streams).max(100),
        };
        config.max_concurrent_uni_streams(streams.into());
        config.max_concurrent_bidi_streams(streams.into());
        let idle = Duration::from_nanos(quic.idle_timeout.as_nanos());
        // A time that is too long to be offered means none.
        config.max_idle_timeout(IdleTimeout::try_from(idle).ok());
        if let Some(round_trip) = quic.initial_rtt {
            config.initial_rtt(Duration::from_nanos(round_trip.as_nanos()));
        }
        match quic.datagram {
            Some(datagram) => {
                config.initial_mtu(datagram);
                config.mtu_discovery_config(None);
            }
            None => {
                let mut search = MtuDiscoveryConfig::default();
                search.upper_bound(QuicFlow::MAX_PROBED);
                config.mtu_discovery_config(Some(search));
            }
        }
        if let Some(asked) = quic.ack_frequency {
            let mut config_of_acks = AckFrequencyConfig::default();
            // quinn's setting counts the packets without an ACK.
            config_of_acks.ack_eliciting_threshold((asked.every - 1).into());
            config_of_acks.max_ack_delay(asked.delay.map(|delay| Duration::from_nanos(delay.as_nanos())));
            config.ack_frequency_config(Some(config_of_acks));
        }
        let control = Arc::new(Gauged { factory: control::factory(quic), gauge });
        if quic.pacing {
            config.congestion_controller_factory(control);
        } else {
            // The window is checked once for a batch of datagrams, so a batch must be a single one.
            config.enable_segmentation_offload(false);
            config.congestion_controller_factory(Arc::new(Unpaced { factory: control }));
        }
        config
    }
}
