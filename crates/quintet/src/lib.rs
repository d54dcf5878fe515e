//! quintet
