//! The selection of cells of the board.

use bentpipe_language::suggest::did_you_mean;

use super::cell::SHAPES;
use super::place::PLACES;
use super::transport::TRANSPORTS;

/// A selection of cells by words. Words of one dimension (such as two links) are alternatives; words of different dimensions must
/// all match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    wanted: [Vec<&'static str>; 5],
}

/// A word that names nothing on the board.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing on the board is called `{word}`")]
pub struct UnknownWord {
    /// The word.
    pub word: String,
    /// A suggestion, or the known words.
    pub help: String,
}

/// The dimensions of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dimension {
    Place,
    Loss,
    Size,
    Transport,
    Shape,
}

impl Dimension {
    const ALL: [Dimension; 5] =
        [Dimension::Place, Dimension::Loss, Dimension::Size, Dimension::Transport, Dimension::Shape];

    const fn name(self) -> &'static str {
        match self {
            Dimension::Place => "links",
            Dimension::Loss => "losses",
            Dimension::Size => "sizes",
            Dimension::Transport => "transports",
            Dimension::Shape => "boxes",
        }
    }

    /// Its words, each once.
    fn words(self) -> Vec<&'static str> {
        let mut words: Vec<&'static str> = match self {
            Dimension::Place => PLACES.iter().map(|place| place.name).collect(),
            Dimension::Loss => PLACES.iter().flat_map(|place| place.losses).copied().collect(),
            Dimension::Size => PLACES.iter().flat_map(|place| place.sizes).copied().collect(),
            Dimension::Transport => TRANSPORTS.iter().map(|transport| transport.name).collect(),
            Dimension::Shape => SHAPES.to_vec(),
        };
        let mut seen = Vec::new();
        words.retain(|word| {
            !seen.contains(word) && {
                seen.push(*word);
                true
            }
        });
        words
    }
}

/// A word without spaces and case: `10MB` is `10 MB`.
fn plain(word: &str) -> String {
    word.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect()
}

impl Selection {
    /// The selection of these words; without any, the whole board.
    ///
    /// # Errors
    /// Fails at the first word that names nothing.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Selection, UnknownWord> {
        let mut selection = Selection::default();
        for word in words {
            let found = Dimension::ALL.into_iter().find_map(|dimension| {
                let known = dimension.words().into_iter().find(|known| plain(known) == plain(word))?;
                Some((dimension, known))
            });
            let (dimension, known) = found.ok_or_else(|| unknown(word))?;
            selection.wanted[dimension as usize].push(known);
        }
        Ok(selection)
    }

    /// True if it selects everything.
    pub fn is_whole(&self) -> bool {
        self.wanted.iter().all(Vec::is_empty)
    }

    pub(crate) fn has(&self, dimension: Dimension, word: &str) -> bool {
        let wanted = &self.wanted[dimension as usize];
        wanted.is_empty() || wanted.contains(&word)
    }
}

fn unknown(word: &str) -> UnknownWord {
    let all: Vec<_> = Dimension::ALL.into_iter().flat_map(Dimension::words).collect();
    let help = did_you_mean(word, all).unwrap_or_else(|| {
        let lists = Dimension::ALL.map(|dimension| format!("{}: {}", dimension.name(), dimension.words().join(", ")));
        format!("there are {}", lists.join("; "))
    });
    UnknownWord { word: word.to_owned(), help }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_one_kind_are_alternatives() {
        let chosen = Selection::parse(["250/3", "10/2", "10mb", "BBR3"]).expect("all are known");
        assert!(chosen.has(Dimension::Place, "250/3") && chosen.has(Dimension::Place, "10/2"));
        assert!(!chosen.has(Dimension::Place, "meo") && !chosen.has(Dimension::Size, "2 MB"));
        assert!(chosen.has(Dimension::Size, "10 MB") && chosen.has(Dimension::Transport, "bbr3"));
        assert!(chosen.has(Dimension::Shape, "plain"), "nothing was said of boxes");
        assert!(Selection::parse([]).expect("nothing").is_whole() && !chosen.is_whole());
    }

    #[test]
    fn an_unknown_word_is_told() {
        let help = |word| Selection::parse([word]).expect_err("unknown").help;
        assert_eq!(help("starlnk"), "did you mean `starlink`?");
        assert!(
            help("xyz").contains("links: 250/3, 50/10") && help("xyz").contains("boxes: plain, uplink, link, split")
        );
    }

    #[test]
    fn no_word_stands_for_two_things() {
        let all: Vec<_> = Dimension::ALL.into_iter().flat_map(Dimension::words).map(plain).collect();
        for (n, word) in all.iter().enumerate() {
            assert!(!all[..n].contains(word), "{word}");
        }
    }
}
