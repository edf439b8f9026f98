//! Bytes to values and back: the headers as they stand on the wire.
