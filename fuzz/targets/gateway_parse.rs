//! Text as a gateway's settings: read, or refused with places; never a panic.

use bentpipe_gateway::settings::GatewayFile;

pub(crate) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Err(errors) = GatewayFile::parse(text, "gateway.toml") {
        assert!(!errors.0.is_empty());
        let _ = errors.render(false);
    }
}
