//! quintet
#![deny(unsafe_code)]
