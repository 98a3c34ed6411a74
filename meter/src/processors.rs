//! CPU time by the kernel's own count per processor. The count includes work outside the node's cgroups:
//! other containers next to a node that is a container itself, and the time that the hypervisor gave to
//! others.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use frugality_measure::attribution::{ProcessorTimes, ProcessorWork};

use crate::power::sysfs::read_text;

/// Unit of `/proc/stat`: `USER_HZ` is 100 on every architecture that Linux runs Kubernetes on.
const NANOSECONDS_PER_TICK: u64 = 10_000_000;
/// The processors' lines come first and have under 120 characters each. This length holds 256 processors.
const LONGEST_HEAD: usize = 32_768;

/// Reads `/proc/stat`.
#[derive(Debug)]
pub(crate) struct Processors {
    stat: File,
    /// Numbers of the processors that the node may use.
    allowed: Vec<u32>,
    is_whole_machine: bool,
    buffer: Vec<u8>,
}

impl Processors {
    /// Opens the file below `procfs`; `None` if the file is missing. The node's processors are the ones that
    /// this process may use: kubelet puts the meter where it puts the node's other pods.
    pub(crate) fn find(procfs: &Path, is_whole_machine: bool) -> Option<Self> {
        let status = read_text(&procfs.join("self/status"))?;
        let list = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        let mut processors = Self {
            stat: File::open(procfs.join("stat")).ok()?,
            allowed: numbers(list.trim())?,
            is_whole_machine,
            buffer: vec![0; LONGEST_HEAD],
        };
        processors.read().map(|_| processors)
    }

    /// The sums over the node's processors; `None` if one of them is not in the file.
    pub(crate) fn read(&mut self) -> Option<ProcessorTimes> {
        let length = self.stat.read_at(&mut self.buffer, 0).ok()?;
        let text = String::from_utf8_lossy(&self.buffer[..length]);
        let [busy, interrupts, stolen] = sum(&text, &self.allowed)?;
        let work = ProcessorWork {
            busy_nanoseconds: busy * NANOSECONDS_PER_TICK,
            interrupt_nanoseconds: interrupts * NANOSECONDS_PER_TICK,
        };
        Some(ProcessorTimes {
            work: (!self.is_whole_machine).then_some(work),
            stolen_nanoseconds: stolen * NANOSECONDS_PER_TICK,
        })
    }
}

/// Ticks of work, of interrupts and of stolen time. The fields of a line are user, nice, system, idle,
/// iowait, irq, softirq and steal (proc_stat(5)). The field user already includes guest time.
fn sum(text: &str, allowed: &[u32]) -> Option<[u64; 3]> {
    let (mut busy, mut interrupts, mut stolen, mut seen) = (0, 0, 0, 0);
    for line in text.lines() {
        let mut fields = line.split_ascii_whitespace();
        let Some(number) = fields.next().and_then(|name| name.strip_prefix("cpu")) else {
            break;
        };
        let Ok(number) = number.parse::<u32>() else {
            continue;
        };
        if !allowed.contains(&number) {
            continue;
        }
        let ticks: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
        let (user, nice, system) = (ticks.first()?, ticks.get(1)?, ticks.get(2)?);
        busy += user + nice + system;
        // Kernels before 2.6 report no interrupts, and kernels before 2.6.11 no stolen time.
        let later = |field: usize| ticks.get(field).copied().unwrap_or(0);
        interrupts += later(5) + later(6);
        stolen += later(7);
        seen += 1;
    }
    (seen == allowed.len() && seen > 0).then_some([busy, interrupts, stolen])
}

/// The numbers of a list such as `0-3,6`.
fn numbers(list: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for part in list.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (u32, u32) = (from.parse().ok()?, to.parse().ok()?);
        numbers.extend(from..=to);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  300 6 30 1000 7 8 9 20 0 0\n\
                        cpu0 100 2 10 500 3 4 5 12 40 0\n\
                        cpu1 200 4 20 500 4 4 4 8 0 0\n\
                        intr 17 0 0\n";

    #[test]
    fn only_the_nodes_processors_count() {
        let times = |allowed: &[u32]| sum(STAT, allowed);
        assert_eq!(times(&[0]), Some([112, 9, 12]));
        assert_eq!(times(&[0, 1]), Some([336, 17, 20]));
        assert_eq!(times(&[0, 7]), None, "a processor that is not there");
        assert_eq!(times(&[]), None);
        assert_eq!(sum("cpu0 1 2 3\n", &[0]), Some([6, 0, 0]));
        assert_eq!(sum("cpu0 1 x 3\n", &[0]), None);
    }

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(numbers("0-2,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(numbers("1"), Some(vec![1]));
        assert_eq!(numbers(""), None);
    }

    #[test]
    fn this_machine_has_processors() {
        let read = |is_whole_machine| {
            let mut processors = Processors::find(Path::new("/proc"), is_whole_machine).unwrap();
            processors.read().unwrap().work
        };
        assert!(read(false).is_some_and(|work| work.busy_nanoseconds > 0));
        assert_eq!(read(true), None, "nothing is outside of the machine");
        assert!(Processors::find(Path::new("/nowhere"), false).is_none());
    }
}
