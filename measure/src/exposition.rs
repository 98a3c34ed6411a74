//! exposition
