//! What the command has from the one that started it: ignored signals, capabilities.

use std::io::Read;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;

use super::support::{file, possible};

const LINK: &str = "name = \"test\"\n[[links]]\nname = \"sat\"\nbetween = [\"net\", \"me\"]\nrate = \"10 Mbit/s\"\ndelay = \"9 ms\"\n\
                    [[flows]]\nfrom = \"net\"\nto = \"me\"\nbytes = \"1 MB\"\n";

/// `nohup` ignores SIGHUP for its command.
#[test]
fn what_nohup_starts_outlives_the_terminal() {
    if !possible() {
        return;
    }
    let (_folder, path) = file(LINK);
    for command in ["emulate", "shell"] {
        let mut shell = Command::new("sh");
        let nohup = "trap '' HUP; exec \"$0\" \"$@\"";
        let script = "echo on; sleep 1; exit 7";
        shell.args(["-c", nohup, env!("CARGO_BIN_EXE_bentpipe"), command, &path, "--", "sh", "-c", script]);
        let mut child = shell.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("sh is there");
        child.stdout.as_mut().expect("piped").read_exact(&mut [0; 2]).expect("it is on");
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), Signal::SIGHUP).expect("it runs");
        assert_eq!(child.wait().expect("ours").code(), Some(7), "{command}");
    }
}

/// Root of a container, as docker starts it. All that was said was "the device before the link: Operation not permitted".
#[test]
fn root_without_all_rights_is_told_what_it_lacks() {
    if !possible() {
        return;
    }
    let (_folder, path) = file(LINK);
    for lost in ["-net_admin", "-sys_admin"] {
        for command in ["shell", "emulate"] {
            let mut lesser = Command::new("setpriv");
            lesser.args(["--bounding-set", lost, "--inh-caps", lost, env!("CARGO_BIN_EXE_bentpipe"), command]);
            let output = lesser.args([&path, "--", "true"]).output().expect("setpriv is there");
            let error = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{command} {lost}: {error}");
            assert!(error.contains("Operation not permitted") && error.contains("--cap-add NET_ADMIN"), "{error}");
        }
    }
}

/// A program that ignores SIGCHLD, so as to leave no zombies, starts it. "The program `ip`: No child processes" was the end of each start.
#[test]
fn children_are_waited_for_whoever_starts_it() {
    if !possible() {
        return;
    }
    let (_folder, path) = file(LINK);
    for command in ["emulate", "shell"] {
        // A shell does not pass it on.
        let mut env = Command::new("env");
        env.args(["--ignore-signal=CHLD", env!("CARGO_BIN_EXE_bentpipe"), command, &path, "--", "sh", "-c", "exit 7"]);
        let output = env.output().expect("coreutils");
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(7), "{command}: {error}");
    }
}
