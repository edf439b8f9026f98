//! The repository's scenarios, inside the binary: `bentpipe run geo` needs no file.

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        /// Name and text of each.
        pub const SHIPPED: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../scenarios/", $name, ".toml")))),*];
    };
}

shipped!(
    "acts-1",
    "acts-2",
    "acts-3",
    "acts-4",
    "acts-5",
    "acts-beams",
    "d2d",
    "geo",
    "geo-board",
    "geo-bursts",
    "geo-gateway",
    "geo-gateway-link",
    "geo-ka-rain",
    "geo-ku",
    "geo-quic",
    "geo-uplink",
    "hybrid-end-to-end",
    "hybrid-fading",
    "hybrid-sack",
    "hybrid-shared",
    "hybrid-split",
    "l4s",
    "leo",
    "maritime-vsat",
    "meo",
    "minei-direct",
    "minei-split",
    "request-response",
    "slacp-geo",
    "slacp-voice",
    "split-stp",
    "starlink",
    "stp",
    "transat",
    "transat-bursts",
    "transat-cbr",
    "transat-four-flows",
    "transat-layer",
    "transat-slacp",
);

/// The text of the scenario with that name.
pub(crate) fn text(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_the_repository_are_here() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .expect("the folder is there")
            .map(|entry| entry.expect("readable").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
            .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
            .collect();
        files.sort();
        assert_eq!(SHIPPED.iter().map(|(name, _)| *name).collect::<Vec<_>>(), files);
    }
}
