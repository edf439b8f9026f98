//! A mark in the prompt of an interactive shell: which links it is behind.
//!
//! A shell's own start files set its prompt, so a variable of the environment would be overwritten. Each shell is therefore told
//! to read a file of ours, which reads the user's own first: bash by `--rcfile`, zsh by `ZDOTDIR`, sh (dash, ksh, busybox) by `ENV`.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

/// Marks the prompt of `shell`, which `command` starts, with `name`. Shells other than these are left unchanged, and `None` is
/// returned. The folder must live as long as the shell.
///
/// # Errors
/// Fails if no temporary file can be written.
pub(super) fn mark(command: &mut Command, shell: &str, name: &str) -> io::Result<Option<TempDir>> {
    mark_with(command, shell, name, |variable| std::env::var(variable).ok())
}

/// As [`mark`], with the environment that `own` returns.
fn mark_with(
    command: &mut Command,
    shell: &str,
    name: &str,
    own: impl Fn(&str) -> Option<String>,
) -> io::Result<Option<TempDir>> {
    let program = Path::new(shell).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = plain(name);
    let folder = || tempfile::Builder::new().prefix("bentpipe-").tempdir();
    let folder = match program {
        "bash" => {
            let folder = folder()?;
            let file = folder.path().join("bashrc");
            // `--rcfile` replaces this file.
            fs::write(&file, format!("[ -r ~/.bashrc ] && . ~/.bashrc\nPS1=\"({name}) $PS1\"\n"))?;
            command.arg("--rcfile").arg(file);
            folder
        }
        "zsh" => {
            let folder = folder()?;
            let theirs = own("ZDOTDIR").and_then(|path| quoted(&path)).unwrap_or_else(|| "$HOME".to_owned());
            let read = |file: &str| format!("[ -r \"$ZDOTDIR/{file}\" ] && . \"$ZDOTDIR/{file}\"\n");
            // The user's .zshenv may set ZDOTDIR. zsh must still find our .zshrc, and that the user's.
            let (begin, end) = ("_ours=$ZDOTDIR", "_theirs=$ZDOTDIR; ZDOTDIR=$_ours");
            let env = format!("{begin}; ZDOTDIR={theirs}\n{}{end}\n", read(".zshenv"));
            fs::write(folder.path().join(".zshenv"), env)?;
            let begin = "ZDOTDIR=$_theirs; unset _ours _theirs";
            let rc = format!("{begin}\n{}PROMPT=\"({name}) $PROMPT\"\n", read(".zshrc"));
            fs::write(folder.path().join(".zshrc"), rc)?;
            command.env("ZDOTDIR", folder.path());
            folder
        }
        "sh" | "dash" | "ash" | "ksh" | "mksh" => {
            let folder = folder()?;
            let file = folder.path().join("shrc");
            let theirs = own("ENV").map(|path| expanded(&path));
            let read = theirs.map(|path| format!("[ -r {path} ] && . {path}\n")).unwrap_or_default();
            fs::write(&file, format!("{read}PS1=\"({name}) ${{PS1:-$ }}\"\n"))?;
            command.env("ENV", file);
            folder
        }
        _ => return Ok(None),
    };
    Ok(Some(folder))
}

/// Quotes a path for a shell, so that nothing in it is expanded.
fn quoted(path: &str) -> Option<String> {
    shlex::try_quote(path).ok().map(String::from)
}

/// Quotes a path for a shell, so that only `$NAME` is expanded, as in the value of `ENV` (POSIX, "Shell Variables").
fn expanded(path: &str) -> String {
    let escaped = |c: char| if "\"\\`".contains(c) { format!("\\{c}") } else { c.to_string() };
    format!("\"{}\"", path.chars().map(escaped).collect::<String>())
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

    /// The prompt that a shell has after its start files. `env` is the value of `ENV`.
    fn prompt(shell: &str, name: &str, home: &Path, env: Option<&str>) -> String {
        let mut command = Command::new(shell);
        let own = |variable: &str| env.filter(|_| variable == "ENV").map(str::to_owned);
        let _folder = mark_with(&mut command, shell, name, own).expect("room").expect("it is known");
        command.args(["-i", "-c", "echo \"<$PS1>\""]).env("HOME", home).stdin(std::process::Stdio::null());
        String::from_utf8(command.output().expect("it starts").stdout).expect("text")
    }

    #[test]
    fn the_users_own_prompt_stays_behind_the_mark() {
        let home = tempfile::tempdir().expect("a folder");
        fs::write(home.path().join(".bashrc"), "PS1='mine> '\n").expect("room");
        assert_eq!(prompt("bash", "leo > geo", home.path(), None).trim(), "<(leo > geo) mine> >");
        let sh = prompt("sh", "geo", home.path(), None);
        assert!(sh.starts_with("<(geo) "), "{sh}");
        fs::write(home.path().join("my \"rc\""), "PS1='mine> '\n").expect("room");
        assert_eq!(prompt("sh", "geo", home.path(), Some("$HOME/my \"rc\"")).trim(), "<(geo) mine> >");
    }

    /// The start files of zsh in the order in which it reads them, read by `sh`: they contain nothing that is zsh's alone. The user's
    /// .zshenv sets ZDOTDIR.
    #[test]
    fn zsh_finds_the_users_files_where_they_are() {
        let home = tempfile::tempdir().expect("a folder");
        let moved = home.path().join("my zsh");
        fs::create_dir(&moved).expect("room");
        fs::write(home.path().join(".zshenv"), "ZDOTDIR=\"$HOME/my zsh\"\n").expect("room");
        fs::write(moved.join(".zshrc"), "PROMPT='mine> '\n").expect("room");
        for theirs in [None, Some(moved.display().to_string())] {
            let mut zsh = Command::new("zsh");
            let folder = mark_with(&mut zsh, "zsh", "geo", |_| theirs.clone()).expect("room").expect("it is known");
            let read = ". \"$ZDOTDIR/.zshenv\"; . \"$ZDOTDIR/.zshrc\"; echo \"<$PROMPT>$ZDOTDIR\"";
            let mut sh = Command::new("sh");
            sh.args(["-c", read]).env("ZDOTDIR", folder.path()).env("HOME", home.path());
            let said = String::from_utf8(sh.output().expect("it starts").stdout).expect("text");
            assert_eq!(said.trim(), format!("<(geo) mine> >{}", moved.display()), "{theirs:?}");
        }
    }
}
