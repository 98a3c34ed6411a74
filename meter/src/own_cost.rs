//! CPU time and memory of the meter itself.

use std::fs;

/// The kernel reports a process's time in hundredths of a second, on every architecture (USER_HZ).
const TICKS_PER_SECOND: f64 = 100.0;
const BYTES_PER_KIBIBYTE: u64 = 1024;

/// CPU time of this process so far, in seconds.
pub(crate) fn cpu_seconds() -> Option<f64> {
    cpu_seconds_in(&fs::read_to_string("/proc/self/stat").ok()?)
}

/// Resident memory of this process, in bytes.
pub(crate) fn resident_bytes() -> Option<u64> {
    resident_bytes_in(&fs::read_to_string("/proc/self/status").ok()?)
}

/// `utime` and `stime` are the 14th and 15th field. The name before them may contain any character.
fn cpu_seconds_in(stat: &str) -> Option<f64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some((user + system) as f64 / TICKS_PER_SECOND)
}

fn resident_bytes_in(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * BYTES_PER_KIBIBYTE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_s_lines_are_understood_with_any_process_name() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 90 0 0 0 125 50 0 0 20 0 1 0 3 9 9";
        assert_eq!(cpu_seconds_in(stat), Some(1.75));
        let status = "Name:\tmeter\nVmPeak:\t  9000 kB\nVmRSS:\t    4096 kB\nThreads:\t1\n";
        assert_eq!(resident_bytes_in(status), Some(4 << 20));
        assert!(cpu_seconds().is_some() && resident_bytes() > Some(0));
    }
}
