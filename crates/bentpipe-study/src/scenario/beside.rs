//! The files to which a scenario refers, relative to its own location.

use std::io;
use std::path::Path;

use bentpipe_language::error::Problems;
use bentpipe_language::reader::Item;

/// Returns the text of a file.
pub type ReadFile<'a> = &'a dyn Fn(&Path) -> io::Result<String>;

/// Where a scenario's files are, and how they are read.
#[derive(Clone, Copy)]
pub(crate) struct Beside<'a> {
    folder: &'a Path,
    read: ReadFile<'a>,
}

impl<'a> Beside<'a> {
    /// The files relative to the scenario file of this name.
    pub(crate) fn of(scenario: &'a str, read: ReadFile<'a>) -> Self {
        Beside { folder: Path::new(scenario).parent().unwrap_or(Path::new("")), read }
    }

    /// The text of the file `name`, and its index among the sources of errors.
    pub(crate) fn text(
        &self,
        name: &str,
        item: &Item<'_>,
        expected: &str,
        problems: &mut Problems,
    ) -> Option<(String, usize)> {
        let path = self.folder.join(name);
        match (self.read)(&path) {
            Ok(mut text) => {
                // Excel's "CSV UTF-8" begins with a byte order mark.
                if text.starts_with('\u{feff}') {
                    text.drain(..'\u{feff}'.len_utf8());
                }
                let source = problems.add_source(&path.display().to_string(), &text);
                Some((text, source))
            }
            Err(error) => {
                let message = format!("`{}` cannot be read: {error}", path.display());
                item.refuse(problems, message, Some(expected.to_owned()));
                None
            }
        }
    }
}
