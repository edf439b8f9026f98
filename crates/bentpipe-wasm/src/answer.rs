//! The block of an answer.

use serde::Serialize;

use crate::arrays::Arrays;
use crate::request::Request;
use crate::run;

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Answer<T> {
    Ok(T),
    Error(String),
}

/// The answer to a request as a block.
pub(crate) fn block(request: &[u8]) -> Vec<u8> {
    let mut arrays = Arrays::default();
    let json = match serde_json::from_slice(request) {
        Ok(Request::About) => json(Ok(run::about())),
        Ok(Request::Look(world)) => json(run::look(&world)),
        Ok(Request::Run(run)) => json(run::run(&run, &mut arrays)),
        Ok(Request::Fingerprint(request)) => json(run::fingerprint(&request)),
        Err(error) => json::<()>(Err(format!("the request is not understood: {error}"))),
    };
    packed(&json, arrays.all())
}

fn json<T: Serialize>(answer: Result<T, String>) -> String {
    let answer = answer.map_or_else(Answer::Error, Answer::Ok);
    serde_json::to_string(&answer).expect("plain data")
}

/// A block.
pub(crate) fn packed(json: &str, numbers: &[f64]) -> Vec<u8> {
    const HEAD: usize = 8;
    let numbers_at = (HEAD + json.len()).next_multiple_of(8);
    let len = numbers_at + 8 * numbers.len();
    let mut block = Vec::with_capacity(len);
    block.extend((len as u32).to_le_bytes());
    block.extend((json.len() as u32).to_le_bytes());
    block.extend(json.as_bytes());
    block.resize(numbers_at, b' ');
    block.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    block
}
