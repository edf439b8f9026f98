//! "Did you mean": the nearest valid word.

/// Suggests the candidate nearest to `word`, if one is near.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, candidates).map(|candidate| format!("did you mean `{candidate}`?"))
}

/// The nearest candidate, with at most a third of its letters wrong; a swap counts once, case does not
/// count.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    all_nearest(word, candidates).first().copied()
}

/// All candidates that are as near as the nearest.
pub(crate) fn all_nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let simple = |text: &str| text.to_lowercase().replace(['_', ' '], "-");
    let word = simple(word);
    let near: Vec<_> = candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, &simple(candidate)), candidate))
        .filter(|&(distance, candidate)| distance <= (candidate.chars().count().max(word.chars().count()) / 3).max(1))
        .collect();
    let least = near.iter().map(|&(distance, _)| distance).min();
    near.into_iter().filter(|&(distance, _)| Some(distance) == least).map(|(_, candidate)| candidate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_only() {
        let words = ["delay", "rate", "queue", "bit_error_rate"];
        assert_eq!(nearest("dealy", words), Some("delay"));
        assert_eq!(nearest("bit-error-rate", words), Some("bit_error_rate"));
        assert_eq!(nearest("Queue", words), Some("queue"));
        assert_eq!(nearest("colour", words), None);
        assert_eq!(nearest("fade", ["name", "rate", "loss"]), None, "half of the letters differ");
    }
}
