//! A mark in the prompt of an interactive shell: which links it is behind.
//!
//! A shell's own start files set its prompt, so a variable of the environment would be overwritten. Each shell is therefore told
//! to read a file of ours, which reads the user's own first: bash by `--rcfile`, zsh by `ZDOTDIR`, sh (dash, ksh, busybox) by `ENV`.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// Marks the prompt of `shell`, which `command` starts, with `name`. Other shells are started as they are. The folder must live as
/// long as the shell.
///
/// # Errors
/// Fails if no temporary file can be written.
pub(super) fn mark(command: &mut Command, shell: &str, name: &str) -> io::Result<Option<TempDir>> {
    let program = Path::new(shell).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = plain(name);
    let folder = || tempfile::Builder::new().prefix("bentpipe-").tempdir();
    let folder = match program {
        "bash" => {
            let folder = folder()?;
            let file = folder.path().join("bashrc");
            // What an interactive bash reads otherwise.
            fs::write(&file, format!("[ -r ~/.bashrc ] && . ~/.bashrc\nPS1=\"({name}) $PS1\"\n"))?;
            command.arg("--rcfile").arg(file);
            folder
        }
        "zsh" => {
            let folder = folder()?;
            let own = theirs("ZDOTDIR").unwrap_or_else(|| "$HOME".to_owned());
            let read = |file: &str| format!("[ -r {own}/{file} ] && . {own}/{file}\n");
            fs::write(folder.path().join(".zshenv"), read(".zshenv"))?;
            let last = format!("PROMPT=\"({name}) $PROMPT\"\n");
            fs::write(folder.path().join(".zshrc"), format!("ZDOTDIR={own}\n{}{last}", read(".zshrc")))?;
            command.env("ZDOTDIR", folder.path());
            folder
        }
        "sh" | "dash" | "ash" | "ksh" | "mksh" => {
            let folder = folder()?;
            let file = folder.path().join("shrc");
            let read = theirs("ENV").map(|path| format!("[ -r {path} ] && . {path}\n")).unwrap_or_default();
            fs::write(&file, format!("{read}PS1=\"({name}) ${{PS1:-$ }}\"\n"))?;
            command.env("ENV", file);
            folder
        }
        _ => return Ok(None),
    };
    Ok(Some(folder))
}

/// The user's own start file or folder, quoted for a shell.
fn theirs(variable: &str) -> Option<String> {
    let path = std::env::var(variable).ok()?;
    shlex::try_quote(&path).ok().map(String::from)
}

/// The name without what a prompt would expand.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric() || " -_.>".contains(*c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_is_expanded() {
        assert_eq!(plain("geo > `rm -rf /` $(x) 10%\\"), "geo > rm -rf  x 10");
    }

    #[test]
    fn other_shells_are_started_as_they_are() {
        let mut command = Command::new("fish");
        assert!(mark(&mut command, "/usr/bin/fish", "geo").expect("no file is needed").is_none());
        assert_eq!(command.get_args().count() + command.get_envs().count(), 0);
    }

    /// The prompt that a shell has after its start files.
    fn prompt(shell: &str, name: &str, home: &Path) -> String {
        let mut command = Command::new(shell);
        let _folder = mark(&mut command, shell, name).expect("room").expect("it is known");
        command.args(["-i", "-c", "echo \"<$PS1>\""]).env("HOME", home).stdin(std::process::Stdio::null());
        String::from_utf8(command.output().expect("it starts").stdout).expect("text")
    }

    #[test]
    fn the_users_own_prompt_stays_behind_the_mark() {
        let home = tempfile::tempdir().expect("a folder");
        fs::write(home.path().join(".bashrc"), "PS1='mine> '\n").expect("room");
        assert_eq!(prompt("bash", "leo > geo", home.path()).trim(), "<(leo > geo) mine> >");
        let sh = prompt("sh", "geo", home.path());
        assert!(sh.starts_with("<(geo) "), "{sh}");
    }
}
