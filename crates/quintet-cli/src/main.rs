//! The `quintet` command.
#![deny(unsafe_code)]

fn main() {}
