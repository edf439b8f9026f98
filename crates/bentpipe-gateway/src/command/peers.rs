//! The peers of a gateway, from the tables in its file: set at the start, and added, changed and removed by a reload.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use bentpipe_engine::slacp::classify::HostAddress;
use bentpipe_engine::wire::scone::Signal;
use bentpipe_io::LinkEndpointConfig;

use super::failure::Failure;
use super::plan;
use super::preshared::{Preshared, place};
use crate::log::note;
use crate::settings::{GatewayFile, PeerTable};
use crate::state::LastEndpoints;
use crate::tunnel::{PrivateKey, TunnelConfig};
use crate::{Carries, Gateway, PeerConfig, Reach, Shape, Sources, TerminalConfig, for_packets, for_streams};

/// The peers of a gateway, and the settings for new peers.
#[derive(Debug)]
pub(super) struct Peers {
    private: PrivateKey,
    /// The file as read at the start, for settings that do not change until the next start.
    started: GatewayFile,
    /// The current table of each peer.
    tables: Vec<PeerTable>,
    preshared: Preshared,
}

impl Peers {
    /// Reads all keys, including those of the peers, so that mistakes are reported before anything changes.
    pub(super) fn new(path: &Path, file: &GatewayFile) -> Result<Peers, Failure> {
        let private: PrivateKey = plan::secret(path, "tunnel.private_key", &plan::table(file).private_key)?;
        let preshared = Preshared::read(path, &file.peers)?;
        let peers = Peers { private, started: file.clone(), tables: file.peers.clone(), preshared };
        peers.are_others(path, file)?;
        Ok(peers)
    }

    /// Fails if a peer has the same key as this box.
    fn are_others(&self, path: &Path, file: &GatewayFile) -> Result<(), Failure> {
        let own = self.private.public();
        let is_own = |table: &&PeerTable| table.key == own;
        let Some(table) = file.peers.iter().find(is_own) else { return Ok(()) };
        let key = if table.name.is_some() { "key" } else { "peer_key" };
        let message = "this is this box's own public key".to_owned();
        let expected = "the public key of the peer".to_owned();
        Err(plan::mistake(path, &format!("{}.{key}", place(table)), message, expected)?)
    }

    /// The settings of all peers in the file, for the gateway.
    pub(super) fn all(&self) -> Vec<PeerConfig> {
        let last = LastEndpoints::read(&plan::table(&self.started).state);
        self.tables.iter().map(|table| self.config(table, &self.preshared, &last)).collect()
    }

    fn config(&self, table: &PeerTable, preshared: &Preshared, last: &LastEndpoints) -> PeerConfig {
        let tunnel = plan::table(&self.started);
        let tunnel = TunnelConfig {
            preshared: preshared.of(table).cloned(),
            carries: Some(table.carries),
            last_endpoint: last.of(&table.key),
            keepalive: tunnel.keepalive,
            dead_after: tunnel.dead_after,
            ..TunnelConfig::new(self.private.clone(), table.key, table.endpoint)
        };
        let terminal = TerminalConfig { tunnel, link: self.link(table), weight: table.weight };
        PeerConfig { name: table.name.as_deref().map(Into::into), terminal, reach: reach(table) }
    }

    /// The link layer for a peer. For `link`, the hosts that take turns are those behind the terminal, which is the box
    /// that names its only peer, or each peer of a hub.
    fn link(&self, table: &PeerTable) -> LinkEndpointConfig {
        let satellite = plan::satellite(&self.started, table.rate, table.round_trip);
        let is_terminal = table.name.is_none() && table.endpoint.is_some();
        match table.carries {
            Carries::Streams => for_streams(&satellite),
            Carries::Packets if is_terminal => for_packets(&satellite, HostAddress::Source),
            Carries::Packets => for_packets(&satellite, HostAddress::Destination),
        }
    }

    /// Warns if the next start would have another private key, or none.
    fn look_at_private(&self, path: &Path, read: &GatewayFile) {
        let file = &plan::table(read).private_key;
        if plan::is_special(file) {
            note!("reload: {} is not a regular file, so this private key was not looked at", file.display());
            return;
        }
        // A key of root's cannot be read again, and need not be.
        if std::fs::File::open(file).is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied) {
            return;
        }
        match plan::secret::<PrivateKey>(path, "tunnel.private_key", file) {
            Ok(key) if key.public() == self.private.public() => {}
            Ok(key) => note!(
                "reload: warning: {} has another key now; from the next start on, the peer needs {} as this box's public key",
                file.display(),
                key.public()
            ),
            Err(error) => {
                error.report();
                note!("reload: warning: with this private key, the next start will fail");
            }
        }
    }

    /// Adds, changes and removes peers as the file now says, and logs the changes. Other peers are not affected.
    pub(super) fn reload<S: Shape>(
        &mut self,
        path: &Path,
        gateway: &mut Gateway<S>,
        read: &GatewayFile,
    ) -> Result<String, Failure> {
        self.are_others(path, read)?;
        self.look_at_private(path, read);
        let preshared = self.preshared.read_again(path, &self.tables, &read.peers)?;
        if !self.started.is_hub() {
            return self.reload_only(gateway, read, preshared);
        }
        let before: BTreeMap<_, _> = self.tables.iter().map(|table| (table.key, table)).collect();
        let last = LazyCell::new(|| LastEndpoints::read(&plan::table(&self.started).state));
        let mut plans = Vec::new();
        for has in &read.peers {
            let had = before.get(&has.key);
            let plan = match had {
                Some(had) if *had == has && preshared.is_as_in(&self.preshared, has) => continue,
                Some(had) if is_light(had, has) => Plan::Change,
                Some(_) => Plan::Renew(self.config(has, &preshared, &last)),
                None => Plan::Add(self.config(has, &preshared, &last)),
            };
            plans.push((has, plan));
        }
        let mut stay: BTreeSet<_> = read.peers.iter().map(|has| has.key).collect();
        let mut done = Done::default();
        for gone in self.tables.iter().filter(|table| !stay.contains(&table.key)) {
            gateway.remove(&gone.key);
            done.removed.push(name(gone));
        }
        for (has, plan) in plans {
            let (list, added) = match plan {
                Plan::Change => {
                    gateway.change(&has.key, has.name.as_deref().map(Into::into), has.weight, reach(has));
                    gateway.set_preshared(&has.key, preshared.of(has).cloned());
                    (&mut done.changed, Ok(()))
                }
                Plan::Renew(mut config) => {
                    let last = gateway.remove(&has.key);
                    config.terminal.tunnel.last_endpoint = last.or(config.terminal.tunnel.last_endpoint);
                    (&mut done.renewed, gateway.add(config))
                }
                Plan::Add(config) => (&mut done.added, gateway.add(config)),
            };
            match added {
                Ok(()) => list.push(match before.get(&has.key).and_then(|had| had.name.as_ref()) {
                    Some(had) if Some(had) != has.name.as_ref() => format!("{} (was {had})", name(has)),
                    _ => name(has),
                }),
                Err(error) => {
                    stay.remove(&has.key);
                    done.failed.push(format!("{} ({error})", name(has)));
                }
            }
        }
        gateway.set_rate(Some(read.satellite.rate));
        // The next reload tries again to add the peers that could not be added.
        self.tables = read.peers.iter().filter(|has| stay.contains(&has.key)).cloned().collect();
        self.preshared = preshared;
        Ok(done.to_string())
    }

    /// Reloads the settings of an only peer. Its other settings wait for the next start, because a change would break
    /// all connections.
    fn reload_only<S: Shape>(
        &mut self,
        gateway: &mut Gateway<S>,
        read: &GatewayFile,
        preshared: Preshared,
    ) -> Result<String, Failure> {
        let both = self.tables.first_mut().zip(read.peers.first());
        let Some((had, has)) = both.filter(|(had, has)| had.key == has.key) else { return Ok(String::new()) };
        had.prefixes.clone_from(&has.prefixes);
        had.advice = has.advice;
        had.preshared_key.clone_from(&has.preshared_key);
        gateway.change(&has.key, None, 1, reach(had));
        let is_same = preshared.is_as_in(&self.preshared, has);
        if !is_same {
            gateway.set_preshared(&has.key, preshared.of(has).cloned());
        }
        self.preshared = preshared;
        Ok(if is_same { "" } else { "handshakes use another preshared key from now on; " }.to_owned())
    }

    /// The peers as text, if they have names.
    pub(super) fn shown(file: &GatewayFile) -> String {
        let mut text = String::new();
        for table in file.peers.iter().filter(|table| table.name.is_some()) {
            let shape = match table.carries {
                Carries::Streams => "split",
                Carries::Packets => "link",
            };
            let list =
                |prefixes: &Vec<crate::Prefix>| prefixes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let behind = table.prefixes.as_ref().map(list).filter(|text| !text.is_empty());
            let at = table.endpoint.map_or_else(|| "it calls".to_owned(), |at| at.to_string());
            let _ = writeln!(
                text,
                "# peer {}: {shape}, {}, {at}, {} bit/s, {:.0} ms, weight {}, key {}",
                name(table),
                behind.as_deref().unwrap_or("no prefixes"),
                table.rate.bits_per_second(),
                table.round_trip.as_millis_f64(),
                table.weight,
                table.key,
            );
        }
        text
    }
}

enum Plan {
    Add(PeerConfig),
    Renew(PeerConfig),
    Change,
}

/// The changes made by a reload, for the log.
#[derive(Default)]
struct Done {
    added: Vec<String>,
    changed: Vec<String>,
    renewed: Vec<String>,
    removed: Vec<String>,
    failed: Vec<String>,
}

impl std::fmt::Display for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lists = [
            ("added", &self.added),
            ("changed", &self.changed),
            ("connected anew", &self.renewed),
            ("removed", &self.removed),
            ("not added", &self.failed),
        ];
        let told = lists.iter().filter(|(_, list)| !list.is_empty());
        if told.clone().next().is_none() {
            return f.write_str("no peer has changed; ");
        }
        told.map(|(what, list)| format!("peers {what}: {}; ", list.join(", "))).try_for_each(|text| f.write_str(&text))
    }
}

fn name(table: &PeerTable) -> String {
    table.name.clone().unwrap_or_else(|| table.key.to_string())
}

fn reach(table: &PeerTable) -> Reach {
    let advice = table.advice.map(|advice| Signal::at_most(advice.rate(table.rate)));
    match (&table.name, &table.prefixes) {
        (Some(_), prefixes) => Reach { advice, ..Reach::of(prefixes.clone().unwrap_or_default(), table.carries) },
        (None, prefixes) => Reach { to: None, from: Sources(prefixes.clone()), carries: table.carries, advice },
    }
}

/// True if a change does not need a new tunnel.
fn is_light(had: &PeerTable, has: &PeerTable) -> bool {
    let rest = |table: &PeerTable| PeerTable {
        name: None,
        preshared_key: None,
        prefixes: None,
        weight: 1,
        advice: None,
        ..table.clone()
    };
    rest(had) == rest(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_a_tunnel() {
        let text = |more: &str, key: &str| {
            format!(
                "name = \"hub\"\n[tunnel]\nprivate_key = \"key\"\n[satellite]\nrate = \"1 Mbit/s\"\nround_trip = \"600 ms\"\n\
                 [link]\naddresses = [\"10.8.0.1/24\"]\n[[peers]]\nname = \"a\"\nkey = \"{key}\"\nprefixes = [\"10.1.0.0/24\"]\n{more}"
            )
        };
        let key = PrivateKey::generate().public().to_string();
        let peer = |more: &str| {
            let file = GatewayFile::parse(&text(more, &key), "hub.toml").unwrap_or_else(|errors| panic!("{errors}"));
            file.peers[0].clone()
        };
        let had = peer("");
        for light in ["weight = 3\n", "throughput_advice = \"line\"\n", "preshared_key = \"secret\"\n"] {
            assert!(is_light(&had, &peer(light)), "{light}");
        }
        for heavy in ["rate = \"2 Mbit/s\"\n", "round_trip = \"1 s\"\n", "endpoint = \"192.0.2.1:4500\"\n"] {
            assert!(!is_light(&had, &peer(heavy)), "{heavy}");
        }
    }

    /// A key given to the wrong box is found before the gateway starts. The error names the place of the key.
    #[test]
    fn a_peer_is_another_box() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let own = PrivateKey::generate();
        let private = folder.path().join("key");
        std::fs::write(&private, &*own.reveal()).expect("a file");
        std::fs::set_permissions(&private, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
        let head = "name = \"x\"\n[satellite]\nrate = \"1 Mbit/s\"\nround_trip = \"600 ms\"\n[split]\n[tunnel]\nprivate_key = \"key\"\n";
        let key = own.public();
        for (rest, place) in [
            (format!("peer_key = \"{key}\"\n"), "x.toml:8:"),
            (format!("[[peers]]\nname = \"a\"\nprefixes = [\"10.1.0.0/24\"]\nkey = \"{key}\"\n"), "x.toml:11:"),
        ] {
            let path = folder.path().join("x.toml");
            std::fs::write(&path, format!("{head}{rest}")).expect("a file");
            let (file, _) = GatewayFile::load_with_warnings(&path).unwrap_or_else(|errors| panic!("{errors}"));
            let Err(Failure::Settings(errors)) = Peers::new(&path, &file) else { panic!("it names no place: {rest}") };
            let text = errors.render(false);
            assert!(text.contains(place) && text.contains("this box's own public key"), "{text}");
        }
    }
}
