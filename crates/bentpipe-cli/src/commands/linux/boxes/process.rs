//! The process of one gateway.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bentpipe_emulator::Site;
use bentpipe_io::child::{self, Ask};
use serde_json::Value;
use signal_hook::low_level::signal_name;

use super::super::gateway::LIFELINE;

/// The interpreter that runs this command, if it is part of the Python package.
const PYTHON: &str = "BENTPIPE_PYTHON";
/// Number of the log's last lines that are kept, and max length of a line in bytes.
const LINES: usize = 12;
const MAX_LINE: u64 = 2000;
/// Max time for the answer of a gateway, which is sent at once, and for the end of its log. The links wait meanwhile.
const ANSWER: Duration = Duration::from_millis(300);
/// How long its loop may take to measure. On a busy machine it waits for a processor; its last values are up to a second old.
const MEASURES: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(10);

/// A gateway's process. It is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    control: PathBuf,
    log: Arc<Mutex<VecDeque<String>>>,
    reader: Option<JoinHandle<()>>,
    is_up: bool,
    ended: Option<String>,
    is_told: bool,
}

impl Process {
    /// Starts it in a box, with the settings in `file`. It answers at `control` when it is ready.
    pub(super) fn start(site: &Site, file: &Path, control: &Path) -> io::Result<Process> {
        let mut command = own_command();
        command.args(["gateway", "run"]).arg(file).env(LIFELINE, "stdin");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = site.spawn(&mut command)?;
        let log = Arc::new(Mutex::new(VecDeque::new()));
        let reader = child.stderr.take().map(|said| {
            let log = log.clone();
            std::thread::spawn(move || keep_last(said, &log))
        });
        Ok(Process { child, control: control.to_owned(), log, reader, is_up: false, ended: None, is_told: false })
    }

    /// True if the gateway is ready and its tunnel, if any, is up.
    pub(super) fn is_up(&mut self) -> bool {
        self.is_up = self.is_up || self.status().is_some_and(|status| status["up"] == true);
        self.is_up
    }

    /// True if it has discovered the MTU of the path to its peer, or has none.
    pub(super) fn knows_its_path(&self) -> bool {
        self.status().is_some_and(|status| status["tunnel"]["path_mtu_known"] != false)
    }

    /// Its values, if it answers.
    pub(super) fn status(&self) -> Option<Value> {
        let socket = UnixStream::connect(&self.control).ok()?;
        socket.set_read_timeout(Some(ANSWER)).ok()?;
        serde_json::from_str(&io::read_to_string(socket).ok()?).ok()
    }

    /// Its values of this moment, or the last ones if it does not measure in time.
    pub(super) fn status_now(&mut self) -> Option<Value> {
        if self.ended().is_some() {
            return None;
        }
        let begin = Instant::now();
        // It measures once a second, and when it is asked to read its file again.
        child::ask(&mut self.child, Ask::HangUp);
        loop {
            let status = self.status()?;
            let took = begin.elapsed();
            if took > MEASURES || status["age_ms"].as_u64().is_some_and(|age| u128::from(age) < took.as_millis()) {
                return Some(status);
            }
            std::thread::sleep(STEP);
        }
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Option<String> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten().map(how);
        }
        self.ended.clone()
    }

    /// True once, when it has ended.
    pub(super) fn has_news(&mut self) -> bool {
        self.ended().is_some() && !std::mem::replace(&mut self.is_told, true)
    }

    /// The last lines of its log, each on a new line, with a heading.
    pub(super) fn last_lines(&self) -> String {
        let mut rest = ANSWER;
        while self.ended.is_some() && !rest.is_zero() && self.reader.as_ref().is_some_and(|log| !log.is_finished()) {
            std::thread::sleep(STEP);
            rest = rest.saturating_sub(STEP);
        }
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let lines: String = log.iter().map(|line| format!("\n  {line}")).collect();
        if lines.is_empty() { lines } else { format!("\nthe end of its log:{lines}") }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // All that it has changed belongs to its namespace. It may already have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// This command. The Python package's process is an interpreter, whose path is that of an environment.
fn own_command() -> Command {
    let this = std::env::current_exe().ok();
    let interpreter = std::env::var_os(PYTHON).map(PathBuf::from);
    if let Some(python) = interpreter.filter(|python| this.is_some() && python.canonicalize().ok() == this) {
        let mut command = Command::new(python);
        command.args(["-m", "bentpipe"]);
        return command;
    }
    // Another version may have been installed since this one was started.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("bentpipe");
    command
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (_, Some(signal)) => format!("killed by {}", signal_name(signal).map_or(signal.to_string(), str::to_owned)),
        _ => "its end is not known".to_owned(),
    }
}

/// Reads a log to its end, and keeps its last lines.
fn keep_last(said: impl Read, log: &Mutex<VecDeque<String>>) {
    let mut said = BufReader::new(said);
    loop {
        let mut line = Vec::new();
        if !matches!((&mut said).take(MAX_LINE).read_until(b'\n', &mut line), Ok(1..)) {
            return;
        }
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.len() == LINES {
            log.pop_front();
        }
        log.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept() {
        let text: String = (0..30).map(|n| format!("line {n}\n")).collect();
        let log = Mutex::new(VecDeque::new());
        keep_last(text.as_bytes(), &log);
        let kept = log.into_inner().expect("no panic");
        assert_eq!((kept.len(), &*kept[0], &*kept[LINES - 1]), (LINES, "line 18", "line 29"));
    }
}
