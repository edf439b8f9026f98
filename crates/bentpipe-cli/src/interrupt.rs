//! Ctrl-C and SIGTERM: the first stops the run and shows its results so far, the second ends at once.
//!
//! A command that does not look whether it was asked to stop, for example because it waits for the reader of a pipe, is ended after
//! [`PATIENCE`].

use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bentpipe_io::note;
use bentpipe_study::output::abandon;
#[cfg(target_os = "linux")]
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ},
    flag,
    iterator::SignalsInfo,
    iterator::exfiltrator::{WithOrigin, origin::Origin},
    low_level::siginfo::Cause,
};

use crate::failure::Failure;

static ASKED: AtomicBool = AtomicBool::new(false);
/// True while [`asked`] is being polled.
static HEARD: AtomicBool = AtomicBool::new(false);
/// True if [`asked`] has been polled since the signal.
static ANSWERED: AtomicBool = AtomicBool::new(false);
/// True if Ctrl-C is for a command in the foreground, which receives it too.
#[cfg(target_os = "linux")]
static IS_THE_COMMANDS: AtomicBool = AtomicBool::new(false);

const INTERRUPTED: i32 = 130;

/// How long a command may take to notice the signal. All poll at least every few milliseconds.
const PATIENCE: Duration = Duration::from_millis(800);

/// Starts listening.
pub(crate) fn install() -> Result<(), Failure> {
    listen().map_err(|error| Failure::broken(format!("cannot listen for Ctrl-C: {error}")))
}

#[cfg(target_os = "linux")]
fn listen() -> std::io::Result<()> {
    // Beyond the limit of file sizes (`ulimit -f`) a write then fails like one to a full disk, instead of ending the process.
    flag::register(SIGXFSZ, std::sync::Arc::default())?;
    // `nohup` ignores SIGHUP, so that the command outlives the terminal.
    let hangs_up = (!bentpipe_io::is_ignored(SIGHUP)).then_some(SIGHUP);
    let mut signals = SignalsInfo::<WithOrigin>::new([SIGINT, SIGTERM].into_iter().chain(hangs_up))?;
    let listener = thread::Builder::new().name("signals".to_owned());
    let listen = move || signals.forever().filter(|origin| !is_the_commands(origin)).for_each(|_| received());
    listener.spawn(listen).map(drop)
}

/// True for Ctrl-C at the terminal, which the kernel sends, if a command receives it too.
#[cfg(target_os = "linux")]
fn is_the_commands(origin: &Origin) -> bool {
    IS_THE_COMMANDS.load(Ordering::SeqCst) && origin.signal == SIGINT && matches!(origin.cause, Cause::Kernel)
}

/// Elsewhere no command runs another that would receive the signal, too. Windows reports Ctrl-C, Ctrl-Break and a closed window.
#[cfg(not(target_os = "linux"))]
fn listen() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(received)
}

fn received() {
    if ASKED.swap(true, Ordering::SeqCst) || !HEARD.load(Ordering::SeqCst) {
        end();
    }
    thread::spawn(|| {
        thread::sleep(PATIENCE);
        if !ANSWERED.load(Ordering::SeqCst) {
            end();
        }
    });
}

/// Ends the process. Half-written files go, and namespaces.
fn end() -> ! {
    abandon();
    #[cfg(target_os = "linux")]
    {
        let (done, wait) = mpsc::channel();
        thread::spawn(move || {
            bentpipe_io::Session::abandon();
            done.send(())
        });
        let _ = wait.recv_timeout(PATIENCE);
    }
    // Standard error may be a pipe that nobody reads.
    let (told, wait) = mpsc::channel();
    thread::spawn(move || {
        note!("interrupted");
        told.send(())
    });
    let _ = wait.recv_timeout(Duration::from_millis(100));
    exit(INTERRUPTED)
}

/// From now on the command stops by itself when asked.
pub(crate) fn heed() {
    HEARD.store(true, Ordering::SeqCst);
}

/// From now on there is nothing to stop: the first signal ends the command at once.
pub(crate) fn heed_no_more() {
    HEARD.store(false, Ordering::SeqCst);
}

/// From now on Ctrl-C at the terminal is left to a command, which receives it too.
#[cfg(target_os = "linux")]
pub(crate) fn leave_to_the_command() {
    IS_THE_COMMANDS.store(true, Ordering::SeqCst);
}

/// True if Ctrl-C was pressed.
pub(crate) fn asked() -> bool {
    let asked = ASKED.load(Ordering::Relaxed);
    if asked {
        ANSWERED.store(true, Ordering::Relaxed);
    }
    asked
}
