//! Virtual time: runs scenarios on the bentpipe engine, deterministic on any number of threads
