//! `bentpipe gateway`: keys, rules, the loop, and its status.

mod plan;
mod status;

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bentpipe_gateway::settings::{GatewayFile, ShapeTable};
use bentpipe_gateway::tunnel::{PrivateKey, TunnelConfig};
use bentpipe_gateway::{Carrier, Control, Gateway as Box_, Loop, Published, Readings, Scrape, Shape, Stop, Work, ask};
use bentpipe_io::LinkPortConfig;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::args::{Gateway, Keygen, RunGateway as Run};
use crate::failure::{End, Failure, warned};
use crate::output;

pub(crate) fn gateway(command: &Gateway) -> Result<End, Failure> {
    match command {
        Gateway::Keygen(args) => keygen(args),
        Gateway::Run(args) => run(args),
        Gateway::Up(args) => {
            let rules = plan::rules(&load(&args.file)?);
            if args.dry_run {
                output::print(&rules.script())?;
            } else {
                needs_privilege()?;
                rules.install().map_err(Failure::broken)?;
            }
            Ok(End::Done)
        }
        Gateway::Down(args) => {
            let rules = plan::rules(&load(&args.file)?);
            needs_privilege()?;
            rules.remove().map_err(Failure::broken)?;
            Ok(End::Done)
        }
        Gateway::Status(args) => {
            let file = load(&args.file)?;
            let control = file.control.display();
            let text = ask(&file.control).map_err(|error| {
                Failure::broken(format!("gateway {} does not answer at {control}: {error}", file.name))
            })?;
            output::print(&text)?;
            Ok(End::Done)
        }
    }
}

fn load(path: &Path) -> Result<GatewayFile, Failure> {
    warned(GatewayFile::load_with_warnings(path))
}

fn keygen(args: &Keygen) -> Result<End, Failure> {
    let key = PrivateKey::generate();
    let path = args.file.display();
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&args.file);
    let written = file.and_then(|mut file| writeln!(file, "{}", key.reveal()));
    written.map_err(|error| Failure::broken(format!("{path}: {error}")))?;
    output::print(&format!("{}\n", key.public()))?;
    Ok(End::Done)
}

fn run(args: &Run) -> Result<End, Failure> {
    let file = load(&args.file)?;
    // A wrong key is reported before anything is changed.
    let tunnel = file.tunnel.is_some().then(|| plan::tunnel(&file)).transpose()?;
    let rules = plan::rules(&file);
    if args.dry_run {
        output::print(&rules.script())?;
        return Ok(End::Done);
    }
    needs_privilege()?;
    plan::check(&args.file, &file)?;
    if !args.no_rules {
        rules.install().map_err(Failure::broken)?;
    }
    let done = start(args, &file, tunnel);
    if !args.no_rules {
        rules.remove().map_err(Failure::broken)?;
    }
    done
}

fn start(args: &Run, file: &GatewayFile, tunnel: Option<TunnelConfig>) -> Result<End, Failure> {
    match &file.shape {
        ShapeTable::Split(table) => {
            let gateway = joined(file, tunnel, plan::satellite(file).for_streams(), plan::split(file, table))?;
            serve(args, file, gateway, plan::reload_split)
        }
        ShapeTable::Link(table) => {
            let gateway = joined(file, tunnel, plan::satellite(file).for_packets(), plan::link(file, table)?)?;
            serve(args, file, gateway, plan::reload_link)
        }
        ShapeTable::Uplink(table) => serve(args, file, plan::uplink(file, table)?, plan::reload_uplink),
        ShapeTable::Relay(table) => serve(args, file, plan::relay(file, table)?, plan::reload_relay),
    }
}

/// A shape with its tunnel to the other box.
fn joined<S: Shape>(
    file: &GatewayFile,
    tunnel: Option<TunnelConfig>,
    link: LinkPortConfig,
    shape: S,
) -> Result<Box_<S>, Failure> {
    let tunnel = tunnel.expect("shapes with two gateways have a tunnel");
    let made = Box_::new(plan::table(file).listen, |now| Carrier::new(tunnel, link, now), shape);
    made.map_err(|error| Failure::broken(format!("the gateway cannot start: {error}")))
}

fn serve<W: Work>(
    args: &Run,
    file: &GatewayFile,
    mut gateway: Loop<W>,
    reload: fn(&mut Loop<W>, &GatewayFile) -> &'static str,
) -> Result<End, Failure> {
    let metrics =
        file.metrics.map(|at| Scrape::bind(at).map_err(|error| Failure::broken(format!("metrics at {at}: {error}"))));
    let metrics = metrics.transpose()?;
    // Privileges are per thread: threads started from here on have no more.
    give_up_privileges()?;
    let published = Published::new(Mutex::new(Arc::new(gateway.readings(&file.name))));
    let now = move |published: &Published| {
        let mut readings = published.lock().map(|readings| Readings::clone(&readings)).unwrap_or_default();
        // Without /proc there is less to report.
        let _ = readings.add_process();
        readings
    };
    let source = published.clone();
    let control = Control::serve(&file.control, move || status::json(&now(&source)));
    let control = control.map_err(|error| Failure::broken(format!("{}: {error}", file.control.display())))?;
    if let Some(metrics) = metrics {
        let source = published.clone();
        metrics.serve(move || now(&source).exposition()).map_err(Failure::broken)?;
    }
    let wants_reload = heed_signals(gateway.stop())?;
    let name = file.name.clone();
    let ran = gateway.run(|gateway| {
        if wants_reload.swap(false, Ordering::SeqCst) {
            match GatewayFile::load(&args.file) {
                Ok(read) => {
                    let changed = reload(gateway, &read);
                    let rest = if plan::waits(file, &read) { "; the rest changes at the next start" } else { "" };
                    eprintln!("reload: {changed}{rest}");
                }
                Err(errors) => eprintln!("{}\nreload: the old settings remain", errors.render(false)),
            }
        }
        if let Ok(mut published) = published.lock() {
            *published = Arc::new(gateway.readings(&name));
        }
    });
    drop(control);
    ran.map_err(|error| Failure::broken(format!("the gateway failed: {error}")))?;
    Ok(End::Done)
}

/// SIGTERM and SIGINT drain, a second one ends at once; SIGHUP reloads the settings.
fn heed_signals(stop: Stop) -> Result<Arc<AtomicBool>, Failure> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(Failure::broken)?;
    let wants_reload = Arc::new(AtomicBool::new(false));
    let wish = wants_reload.clone();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if signal == SIGHUP {
                wish.store(true, Ordering::SeqCst);
                stop.wake();
            } else {
                stop.drain();
            }
        }
    });
    Ok(wants_reload)
}

/// Checks privileges first: without them nothing works, and the system's errors do not help.
fn needs_privilege() -> Result<(), Failure> {
    use caps::{CapSet, Capability};
    match caps::has_cap(None, CapSet::Effective, Capability::CAP_NET_ADMIN) {
        Ok(true) => Ok(()),
        _ => Err(Failure::usage(
            "gateways change kernel rules, which this user may not do",
            Some(
                "run it as root, or with CAP_NET_ADMIN (`uplink`: and CAP_NET_RAW); `bentpipe doctor` shows what is missing"
                    .into(),
            ),
        )),
    }
}

/// Drops all privileges except CAP_NET_ADMIN, for listeners and connections with other hosts' addresses and
/// for removing the rules.
fn give_up_privileges() -> Result<(), Failure> {
    use caps::{CapSet, Capability};
    let kept = [Capability::CAP_NET_ADMIN].into_iter().collect();
    let had = caps::read(None, CapSet::Permitted).map_err(Failure::broken)?;
    if had.contains(&Capability::CAP_SETPCAP) {
        for capability in caps::all() {
            if capability != Capability::CAP_NET_ADMIN {
                // A capability unknown to this kernel cannot be dropped.
                let _ = caps::drop(None, CapSet::Bounding, capability);
            }
        }
    }
    let kept: caps::CapsHashSet = had.intersection(&kept).copied().collect();
    caps::set(None, CapSet::Effective, &kept).map_err(Failure::broken)?;
    caps::set(None, CapSet::Permitted, &kept).map_err(Failure::broken)?;
    caps::clear(None, CapSet::Inheritable).map_err(Failure::broken)
}
