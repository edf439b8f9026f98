//! The simulator for a web page: JSON in, JSON and numbers out.
//!
//! The boundary is three functions of whole numbers, [`alloc`], [`free`] and [`call`], instead of wasm-bindgen. The page exchanges one text
//! and one array of numbers per run, for which wasm-bindgen would bring its own program (whose version must equal the library's) and 10 kB
//! of JavaScript. The module has no imports, so it also runs unchanged in Node.js and wasmtime.
//!
//! To run `geo.toml`, the page calls `alloc`, writes the request there, and calls `call`. The answer is a block: its length in bytes, the
//! length of its JSON (both u32, little-endian), the JSON, spaces up to a multiple of 8, and numbers (f64). The JSON refers to the numbers
//! as `arrays::Numbers`. The page copies the parts it needs and calls `free`.
//!
//! - A mistake in a request gives the answer `{"error": "..."}`, with the command's message.
//! - A panic, or memory beyond the limit of the build, ends the instance with a trap; [`last_words`] then has the message. The page creates
//!   a new instance.
//! - Time is bounded by a number of events, memory by the columns and rows of the request: `plot` keeps nothing else.
//!
//! The functions have these names on wasm32 only: elsewhere `free` would replace the C library's.
//!
//! Reading order: `request`, the requests; `knobs`, changes of a scenario; `run`, runs; `plot`, which reduces a run to the
//! width of a plot; `arrays`, the numbers of an answer; `answer`, the block.

mod answer;
mod arrays;
mod knobs;
mod plot;
mod request;
mod run;

use std::panic;
use std::sync::{Mutex, Once};

static LAST_WORDS: Mutex<String> = Mutex::new(String::new());
static HOOK: Once = Once::new();

/// Memory for a request of `len` bytes.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
pub extern "C" fn alloc(len: usize) -> *mut u8 {
    // The type is written: `free` gives back as many bytes.
    Box::into_raw(vec![0_u8; len].into_boxed_slice()).cast()
}

/// Frees a block.
///
/// # Safety
/// `at` and `len` are those of a block from [`alloc`] or [`call`] that was not freed before.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
pub unsafe extern "C" fn free(at: *mut u8, len: usize) {
    // SAFETY: the caller's promise; both functions make blocks as boxed slices of that length.
    drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(at, len)) });
}

/// Answers a request. The caller frees both blocks; the length of the answer's is its first number.
///
/// # Safety
/// `at` and `len` are those of a block from [`alloc`].
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
pub unsafe extern "C" fn call(at: *const u8, len: usize) -> *mut u8 {
    HOOK.call_once(|| panic::set_hook(Box::new(|info| remember(&info.to_string()))));
    // SAFETY: the caller's promise.
    let request = unsafe { std::slice::from_raw_parts(at, len) };
    Box::into_raw(answer::block(request).into_boxed_slice()).cast()
}

/// The message of the panic that ended this instance, as a block like an answer's without numbers; empty if there was none.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
pub extern "C" fn last_words() -> *mut u8 {
    let words = LAST_WORDS.try_lock().map(|words| words.clone()).unwrap_or_default();
    Box::into_raw(answer::packed(&words, &[]).into_boxed_slice()).cast()
}

fn remember(words: &str) {
    if let Ok(mut last) = LAST_WORDS.try_lock() {
        words.clone_into(&mut last);
    }
}
