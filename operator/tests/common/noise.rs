//! Noise for trials whose truth is known.

/// Approximately normal: the sum of twelve uniform numbers from a separate generator.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn next(&mut self) -> f64 {
        let uniform = |noise: &mut Self| {
            noise.0 = noise
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (noise.0 >> 11) as f64 / (1_u64 << 53) as f64
        };
        (0..12).map(|_| uniform(self)).sum::<f64>() - 6.0
    }
}
