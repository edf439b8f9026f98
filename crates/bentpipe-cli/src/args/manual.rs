//! `bentpipe completions` and `bentpipe man`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

const COMPLETIONS_MORE: &str = "\
Examples:
  bentpipe completions bash \\
      > ~/.local/share/bash-completion/completions/bentpipe
  bentpipe completions zsh > ~/.zfunc/_bentpipe      with ~/.zfunc in fpath
  bentpipe completions fish > ~/.config/fish/completions/bentpipe.fish";

#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_MORE)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

const MAN_MORE: &str = "\
Examples:
  bentpipe man ~/.local/share/man/man1               then: man bentpipe-run";

#[derive(Debug, Args)]
#[command(after_help = MAN_MORE)]
pub(crate) struct Man {
    /// Folder of the pages, one for each command
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}
