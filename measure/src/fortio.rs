//! fortio
