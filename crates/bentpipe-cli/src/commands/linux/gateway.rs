//! `bentpipe gateway`: the gateway crate's command.

use std::io::{ErrorKind, Read};

use bentpipe_gateway::command::{self, End as GatewayEnd, Failure as GatewayFailure, Gateway};

use crate::failure::{End, Failure};

/// Set for the gateways of an emulation. They end with their standard input, and so with the emulation, however that ends.
pub(super) const LIFELINE: &str = "BENTPIPE_LIFELINE";

pub(crate) fn gateway(command: &Gateway) -> Result<End, Failure> {
    if std::env::var_os(LIFELINE).is_some() {
        std::thread::spawn(end_with_the_input);
    }
    Ok(command::gateway(command)?.into())
}

/// Ends the process at once when its standard input ends. Its rules end with its network namespace.
fn end_with_the_input() {
    loop {
        match std::io::stdin().read(&mut [0; 64]) {
            Ok(1..) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => std::process::exit(0),
        }
    }
}

impl From<GatewayEnd> for End {
    fn from(end: GatewayEnd) -> End {
        match end {
            GatewayEnd::Done => End::Done,
            GatewayEnd::Lacking => End::Failed,
        }
    }
}

impl From<GatewayFailure> for Failure {
    fn from(failure: GatewayFailure) -> Failure {
        match failure {
            GatewayFailure::Broken(message) => Failure::Broken(message),
            GatewayFailure::Usage(message, help) => Failure::Usage(message, help),
            GatewayFailure::Settings(errors) => Failure::Scenario(errors),
            GatewayFailure::Pipe => Failure::Pipe,
        }
    }
}
