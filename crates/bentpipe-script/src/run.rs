//! Runs one script, from text to verdict.

use crate::features;
use crate::host::command::without_prefix;
use crate::host::own;
use crate::host::{IpVersion, Profile, Settings};
use crate::lang::ast::{Script, Setting};
use crate::lang::parse::parse;
use crate::lang::{Mistake, Refusal};
use crate::play::{Difference, Pace, Player, Stop};

/// Options for running scripts.
#[derive(Clone, Debug)]
pub struct Options {
    /// The system whose defaults the host has.
    pub profile: Profile,
    /// Names defined for `#ifdef`.
    pub defined: Vec<String>,
    /// Initial kernel settings of the host, with `sysctl`'s names.
    pub sysctls: Vec<(String, String)>,
    /// IP version, unless the script chooses one.
    pub version: Option<IpVersion>,
    /// Largest packet, unless the script sets one.
    pub mtu: Option<u32>,
}

impl Options {
    /// A host with this profile; the system's name is defined for `#ifdef`, and `STANDARD` for
    /// the RFCs.
    pub fn new(profile: Profile) -> Self {
        let name = match profile {
            Profile::Linux => "Linux",
            Profile::FreeBsd => "FreeBSD",
            Profile::Rfc => "STANDARD",
        };
        Options { profile, defined: vec![name.to_owned()], sysctls: Vec::new(), version: None, mtu: None }
    }
}

/// The verdict on a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything that it expects has happened.
    Passes,
    /// The first difference.
    Fails(Difference),
    /// It needs unsupported features: their names.
    Unsupported(Vec<String>),
}

/// A verdict, and the packets that led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Played {
    /// The verdict.
    pub verdict: Verdict,
    /// Packets in the script's language, each with its time.
    pub packets: Vec<String>,
    /// Tolerated differences.
    pub notes: Vec<String>,
}

/// packetdrill's own settings that have no effect here.
const IGNORED: [&str; 22] = [
    "local_ip",
    "remote_ip",
    "gateway_ip",
    "netmask_ip",
    "bind_port",
    "connect_port",
    "code_command",
    "code_format",
    "code_sockopt",
    "dry_run",
    "init_scripts",
    "non_fatal",
    "send_omit_free",
    "speed",
    "strict_segments",
    "tcp_ts_ecr_scaled",
    "verbose",
    "wire_client",
    "wire_client_dev",
    "wire_server",
    "persistent_tun_dev",
    "tun_dev",
];

/// Runs a script.
///
/// # Errors
/// Returns the first mistake in the script's text.
pub fn run(text: &str, options: &Options) -> Result<Played, Mistake> {
    let unsupported =
        |features| Played { verdict: Verdict::Unsupported(features), packets: Vec::new(), notes: Vec::new() };
    let script = match parse(text, &options.defined) {
        Ok(script) => script,
        Err(Refusal::Mistake(mistake)) => return Err(mistake),
        Err(Refusal::Foreign(feature)) => return Ok(unsupported(vec![feature.to_owned()])),
    };
    let missing = features::missing(&script, options.profile);
    if !missing.is_empty() {
        return Ok(unsupported(missing.into_iter().collect()));
    }
    let (settings, pace) = settings(&script, options)?;
    let mut player = Player::new(settings, pace);
    let verdict = match player.play(&script) {
        Ok(()) => Verdict::Passes,
        Err((line, Stop::Fails(expected, got))) => Verdict::Fails(Difference { line, expected, got }),
        Err((_, Stop::Needs(feature))) => Verdict::Unsupported(vec![feature]),
    };
    Ok(Played { verdict, packets: std::mem::take(&mut player.log), notes: std::mem::take(&mut player.notes) })
}

fn settings(script: &Script, options: &Options) -> Result<(Settings, Pace), Mistake> {
    let profile = options.profile;
    let mut settings = Settings::new(profile);
    settings.version = options.version.unwrap_or(settings.version);
    settings.mtu = options.mtu.unwrap_or(settings.mtu);
    for (name, value) in &options.sysctls {
        settings.sysctl(without_prefix(name), value);
    }
    let is_strict = profile == Profile::Rfc;
    // packetdrill: 4 ms, or 12.5 % of the time since the previous event. The RFC profile is
    // exact.
    let mut pace = Pace {
        tolerance: if is_strict { 0 } else { 4_000 },
        share: if is_strict { 0 } else { 125 },
        tick: is_strict.then_some(1_000),
    };
    for setting in &script.settings {
        let mistake = |message: String| Mistake { line: setting.line, column: 1, message };
        take(setting, &mut settings, &mut pace, is_strict)
            .map_err(|what| mistake(format!("--{}: {what}", setting.name)))?;
    }
    Ok((settings, pace))
}

fn take(setting: &Setting, settings: &mut Settings, pace: &mut Pace, is_strict: bool) -> Result<(), String> {
    let value = setting.value.as_deref();
    let number = |min: i64, max: i64| {
        let number = value.and_then(|value| value.parse::<i64>().ok());
        number.filter(|number| (min..=max).contains(number)).ok_or(format!("expected a number from {min} to {max}"))
    };
    match setting.name.as_str() {
        "tolerance_usecs" => pace.tolerance = number(0, 3_600_000_000)?,
        "tolerance_percent" => pace.share = 10 * number(0, 100)?,
        "tcp_ts_tick_usecs" => pace.tick = Some(number(0, 1_000_000)?).filter(|tick| *tick > 0),
        "mtu" => settings.mtu = number(68, 65_535)? as u32,
        "ip_version" => {
            let version = value.and_then(IpVersion::named);
            settings.version = version.ok_or("expected ipv4, ipv6 or ipv4-mapped-ipv6")?;
        }
        "mss" if is_strict => settings.mss = Some(number(1, 65_535)? as u16),
        // packetdrill's is the length of the segments in the packets that it joins for the kernel's device.
        "mss" => _ = number(1, 65_535)?,
        "send-buffer" => settings.send_buffer = number(1, 1 << 30)? as usize,
        name if IGNORED.contains(&name) => {}
        name => match own::set(&mut settings.config, name, value.unwrap_or("on")) {
            Some(result) => return result,
            None => return Err("no such setting".into()),
        },
    }
    Ok(())
}
