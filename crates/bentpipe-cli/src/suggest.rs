//! "Did you mean": the nearest of the words that would have been right.

/// A question with the nearest candidate, if one has at most a third of its letters wrong.
pub(crate) fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let distances = candidates.into_iter().map(|known| (strsim::damerau_levenshtein(word, known), known));
    let near = distances.filter(|(distance, known)| distance * 3 <= known.len().max(word.len()) + 2);
    near.min_by_key(|(distance, _)| *distance).map(|(_, known)| format!("did you mean `{known}`?"))
}
