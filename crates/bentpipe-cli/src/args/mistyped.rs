//! The command that was meant by a mistyped one.

use bentpipe_language::suggest::nearest;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

/// Names the nearest command in an error about an unknown one. clap compares letters only at nearby positions, so in a short
/// word it does not see a swap: it has no suggestion for `rnu`.
pub(crate) fn suggest(error: &mut Error, root: &Command, arguments: &[impl AsRef<std::ffi::OsStr>]) {
    let (ErrorKind::InvalidSubcommand, Some(ContextValue::String(word))) =
        (error.kind(), error.get(ContextKind::InvalidSubcommand))
    else {
        return;
    };
    let mut command = root;
    for argument in arguments.iter().skip(1).filter_map(|argument| argument.as_ref().to_str()) {
        command = command.find_subcommand(argument).unwrap_or(command);
    }
    let names = command.get_subcommands().filter(|one| !one.is_hide_set()).map(Command::get_name);
    if let Some(meant) = nearest(word, names).map(str::to_owned) {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![meant]));
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::args::Arguments;

    #[test]
    fn short_and_nested_commands_are_found() {
        let said = |words: &[&str]| {
            let mut error = Arguments::try_parse_from(words).expect_err("a mistyped command");
            suggest(&mut error, &Arguments::command(), words);
            error.to_string().lines().find_map(|line| Some(line.trim().strip_prefix("tip: ")?.to_owned()))
        };
        let similar = |name: &str| Some(format!("a similar subcommand exists: '{name}'"));
        assert_eq!(said(&["bentpipe", "rnu"]), similar("run"));
        assert_eq!(said(&["bentpipe", "compair", "geo"]), similar("compare"));
        assert_eq!(said(&["bentpipe", "link", "ste"]), similar("set"));
        assert_eq!(said(&["bentpipe", "xyzzy"]), None);
    }
}
