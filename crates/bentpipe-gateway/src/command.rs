//! The command: keys, rules, the loop, and the status. `bentpipe gateway` and `bentpipe-gateway` share it.
//! Clippy forbids the macros that panic if the output cannot be written: see `note!` and `failure::print`.
#![warn(clippy::print_stderr, clippy::print_stdout)]

mod args;
mod backlog;
mod collector;
pub mod doctor;
mod failure;
mod installed;
mod interfaces;
mod notices;
mod notify;
pub mod pages;
mod peers;
mod plan;
mod prepare;
mod preshared;
mod privileges;
mod reread;
mod status;
mod user;
mod watch;

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::key_file::read_key;
use crate::log::note;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

pub use args::{Down, File, Gateway, Keygen, Pubkey, Run, Status, Up};
pub use failure::{End, Failure};

use self::collector::Collector;
use self::failure::{print, warned};
use self::installed::Installed;
use self::peers::Peers;
use self::privileges::{give_up_privileges, needs_privilege, raise_descriptors, share_privileges};
use self::reread::Reread;
use self::user::{User, check_rights};
use crate::run::MAX_DRAIN;
use crate::settings::{GatewayFile, ShapeTable};
use crate::tunnel::PrivateKey;
use crate::{BothShapes, Control, Gateway as Box_, LinkShape, Loop, Scrape, Shape, SplitShape, Stop, Work, ask};

/// Runs a command.
///
/// # Errors
/// Fails if the settings are wrong, or if the machine does not permit what they require.
pub fn gateway(command: &Gateway) -> Result<End, Failure> {
    match command {
        Gateway::Keygen(args) => keygen(args),
        Gateway::Pubkey(args) => {
            let key: PrivateKey = read_key(&args.file).map_err(Failure::broken)?;
            print(&format!("{}\n", key.public()))?;
            Ok(End::Done)
        }
        Gateway::Run(args) => run(args),
        Gateway::Up(args) => {
            let file = load(&args.file)?;
            let (rules, instance) = (plan::rules(&file), plan::instance(&file));
            if args.dry_run {
                print(&rules.script(&instance))?;
            } else {
                needs_privilege()?;
                share_privileges()?;
                rules.install(&instance).map_err(Failure::broken)?;
            }
            Ok(End::Done)
        }
        Gateway::Down(args) => {
            let file = load(&args.file)?;
            let (rules, instance) = (plan::rules(&file), plan::instance(&file));
            needs_privilege()?;
            share_privileges()?;
            let done = if args.keep_guard { rules.fall_back(&instance) } else { rules.remove(&instance) };
            done.map_err(Failure::broken)?;
            Ok(End::Done)
        }
        Gateway::Prepare(args) => prepare::prepare(&load(&args.file)?),
        Gateway::Status(args) => {
            let file = load(&args.file)?;
            let control = file.control.display();
            let text = || {
                ask(&file.control).map_err(|error| {
                    let said = format!("gateway {} does not answer at {control}: {error}", file.name);
                    std::io::Error::new(error.kind(), said)
                })
            };
            match args.interval {
                None => print(&text().map_err(Failure::broken)?)?,
                Some(every) => watch::watch(every, text, print)?,
            }
            Ok(End::Done)
        }
    }
}

/// Has the kernel keep the exit codes of children. A process that was started with SIGCHLD ignored, as by programs that do so to leave no
/// zombies, never learns how its children ended. Call this before any is started.
pub fn keep_children() {
    if bentpipe_io::is_ignored(SIGCHLD) {
        // A handler takes the place of ignoring, and children get the default. This fails only for signals that cannot be handled.
        let _ = signal_hook::flag::register(SIGCHLD, Arc::default());
    }
}

/// Prints the help or the version that was asked for.
///
/// # Errors
/// Fails if standard output cannot be written.
pub fn print_help(asked: &clap::Error) -> Result<End, Failure> {
    asked.print().map_err(|error| failure::unprinted(&error))?;
    Ok(End::Done)
}

fn load(path: &Path) -> Result<GatewayFile, Failure> {
    warned(GatewayFile::load_with_warnings(path))
}

fn keygen(args: &Keygen) -> Result<End, Failure> {
    let key = PrivateKey::generate();
    let path = args.file.display();
    if let Some(folder) = args.file.parent() {
        std::fs::create_dir_all(folder).map_err(|error| Failure::broken(format!("{}: {error}", folder.display())))?;
    }
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&args.file);
    let mut file = file.map_err(|error| Failure::broken(format!("{path}: {error}")))?;
    let written = writeln!(file, "{}", *key.reveal()).and_then(|()| file.sync_all());
    written.map_err(|error| {
        // An incomplete key is useless and would block the next attempt.
        let _ = std::fs::remove_file(&args.file);
        Failure::broken(format!("{path}: {error}"))
    })?;
    print(&format!("{}\n", key.public()))?;
    Ok(End::Done)
}

fn run(args: &Run) -> Result<End, Failure> {
    // This comes first: a signal that arrives while the gateway starts must not end it with only half of its rules
    // installed.
    let signals = if args.dry_run { None } else { Some(signals()?) };
    let file = load(&args.file)?;
    // Wrong keys and missing kernel features must be reported before anything is changed.
    let peers = file.tunnel.is_some().then(|| Peers::new(&args.file, &file)).transpose()?;
    plan::check(&args.file, &file)?;
    let user = User::wanted(&args.file, &file)?;
    let hints = plan::memory_hint(&file).into_iter().chain(prepare::hint(&args.file, &file));
    hints.for_each(|hint| note!("warning: {hint}"));
    let Some(signals) = signals else {
        print(&Peers::shown(&file))?;
        print(&plan::rules(&file).script(&plan::instance(&file)))?;
        return Ok(End::Done);
    };
    needs_privilege()?;
    share_privileges()?;
    raise_descriptors();
    start((args, user.as_ref(), signals), &file, peers)
}

/// How a gateway is run: the arguments, the user to switch to, and the signals.
type How<'a> = (&'a Run, Option<&'a User>, Signals);

fn start(how: How<'_>, file: &GatewayFile, peers: Option<Peers>) -> Result<End, Failure> {
    let peers = || peers.expect("shapes of two boxes are read with their peers");
    match &file.shape {
        ShapeTable::Split(table) => {
            joined(how, file, peers(), plan::split(file, table), |shape: &mut SplitShape, read| {
                plan::reload_split(shape, read)
            })
        }
        ShapeTable::Link(table) => {
            joined(how, file, peers(), plan::link(file, table)?, |_: &mut LinkShape, read| match read.is_hub() {
                true => "satellite.rate is as in the file",
                false => "peer_prefixes and throughput_advice are as in the file",
            })
        }
        ShapeTable::Both(split, link) => {
            let shape = BothShapes::new(plan::split(file, split), plan::link(file, link)?);
            joined(how, file, peers(), shape, |shape: &mut BothShapes, read| {
                plan::reload_split(shape.split_mut(), read)
            })
        }
        ShapeTable::Uplink(table) => serve(how, file, plan::uplink(file, table)?, infallible(plan::reload_uplink)),
        ShapeTable::Relay(table) => serve(how, file, plan::relay(file, table)?, infallible(plan::reload_relay)),
    }
}

fn infallible<W>(
    reload: fn(&mut Loop<W>, &GatewayFile) -> String,
) -> impl FnMut(&mut Loop<W>, &GatewayFile) -> Result<String, Failure> {
    move |gateway, read| Ok(reload(gateway, read))
}

/// A shape with its tunnels to other boxes.
fn joined<S: Shape>(
    how: How<'_>,
    file: &GatewayFile,
    mut peers: Peers,
    shape: S,
    reload: fn(&mut S, &GatewayFile) -> &'static str,
) -> Result<End, Failure> {
    let line = file.is_hub().then_some(file.satellite.rate);
    let made = Box_::new(plan::table(file).listen, line, shape);
    let mut gateway = made.map_err(|error| Failure::broken(format!("the gateway cannot start: {error}")))?;
    let path = &how.0.file;
    for peer in peers.all() {
        let name = peer.name.clone().unwrap_or_default();
        gateway.add(peer).map_err(|error| Failure::usage(format!("peer {name}: {error}"), None))?;
    }
    gateway.keep_state(plan::table(file).state.clone());
    serve(how, file, gateway, |gateway, read| {
        let told = peers.reload(path, gateway, read)?;
        Ok(told + reload(gateway.shape_mut(), read))
    })
}

fn serve<W: Work>(
    (args, user, signals): How<'_>,
    file: &GatewayFile,
    mut gateway: Loop<W>,
    mut reload: impl FnMut(&mut Loop<W>, &GatewayFile) -> Result<String, Failure>,
) -> Result<End, Failure> {
    let metrics =
        file.metrics.map(|at| Scrape::bind(at).map_err(|error| Failure::broken(format!("metrics at {at}: {error}"))));
    let metrics = metrics.transpose()?;
    user.map_or(Ok(()), |user| user.make_folders(file))?;
    let control = Control::bind(&file.control);
    let control = control.map_err(|error| Failure::broken(format!("{}: {error}", file.control.display())))?;
    if let Some(user) = user {
        user.give(&file.control);
    }
    // Privileges belong to threads, so all threads started from here on have only these.
    give_up_privileges(user)?;
    check_rights(&args.file, file);
    // By now everything that another process could hold has been acquired, so a gateway that already runs under this
    // name keeps its rules.
    let installed = Installed::new(args.no_rules, file)?;
    let mut collector = Collector::new(file, &mut gateway);
    let source = collector.source();
    control.serve(move |out| status::write(&source(), out)).map_err(Failure::broken)?;
    if let Some(metrics) = metrics {
        let source = collector.source();
        metrics.serve(move || source().exposition()).map_err(Failure::broken)?;
    }
    let wants_reload = heed_signals(signals, gateway.stop()).map_err(Failure::broken)?;
    let mut settings = Reread::new(&args.file, wants_reload);
    notify::ready();
    note!("gateway {} (`{}`, version {}) is ready", file.name, gateway.shape_name(), env!("CARGO_PKG_VERSION"));
    let ran = gateway.run(|gateway| {
        if let Some(read) = settings.take() {
            if let Some(why) = plan::other_kind(file, &read) {
                note!("reload: nothing changes before the next start: {why}");
            } else {
                match reload(gateway, &read) {
                    Ok(changed) => {
                        let rest = if plan::waits(file, &read) { "; the rest changes at the next start" } else { "" };
                        note!("reload: {changed}{rest}");
                        installed.reload(&read);
                        gateway.listen_again();
                    }
                    Err(error) => {
                        error.report();
                        note!("reload: the old settings remain");
                    }
                }
            }
        }
        if settings.are_being_read() {
            gateway.look_soon();
        }
        collector.turn(gateway);
    });
    drop(control);
    let removed = installed.end(ran.is_ok());
    ran.map_err(|error| Failure::broken(format!("the gateway failed: {error}")))?;
    removed?;
    Ok(End::Done)
}

/// Blocks these signals, so that they stay pending until they are handled.
fn signals() -> Result<Signals, Failure> {
    Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(Failure::broken)
}

/// Handles signals: SIGTERM and SIGINT drain, and a second one ends the gateway at once; SIGHUP reloads the settings.
fn heed_signals(mut signals: Signals, stop: Stop) -> std::io::Result<Arc<AtomicBool>> {
    let wants_reload = Arc::new(AtomicBool::new(false));
    let wish = wants_reload.clone();
    let heed = move || {
        let mut is_draining = false;
        for signal in signals.forever() {
            if signal == SIGHUP {
                wish.store(true, Ordering::SeqCst);
                stop.wake();
            } else {
                if !std::mem::replace(&mut is_draining, true) {
                    note!(
                        "this gateway ends once the open connections are over, in {} s at most; a second signal ends it at once",
                        MAX_DRAIN.as_secs_f64()
                    );
                }
                stop.drain();
            }
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(heed)?;
    Ok(wants_reload)
}
