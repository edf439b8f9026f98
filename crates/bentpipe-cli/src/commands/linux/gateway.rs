//! `bentpipe gateway`: the gateway crate's command.

use bentpipe_gateway::command::{self, End as GatewayEnd, Failure as GatewayFailure, Gateway};

use crate::failure::{End, Failure};

pub(crate) fn gateway(command: &Gateway) -> Result<End, Failure> {
    Ok(command::gateway(command)?.into())
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
