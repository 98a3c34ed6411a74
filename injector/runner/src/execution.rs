//! One execution of the candidate's program.

use std::{
    io,
    process::Stdio,
    time::{Duration, Instant},
};

use frugality_measure::batch::{Execution, OUTPUT_LIMIT_BYTES};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::AsyncReadExt,
    net::unix::pipe::Receiver,
    process::{Child, Command},
    time::timeout,
};

/// Time to wait for the end of the output after the program has ended. Only processes that the program left running
/// can keep the output open.
const OUTPUT_PATIENCE: Duration = Duration::from_millis(200);

/// Executes a program to its end. If the future is dropped before, it kills the program and its process group.
pub(crate) async fn execute(argv: &[String]) -> io::Result<Execution> {
    let (name, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    // One pipe for standard output and error keeps the lines in their order.
    let (reader, writer) = io::pipe()?;
    let mut output = Receiver::from_owned_fd(reader.into())?;
    let started = Instant::now();
    let mut child = Command::new(name)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer)
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let group = Group::of(&child);
    let mut kept = Vec::new();
    let status = {
        let ended = child.wait();
        tokio::pin!(ended);
        loop {
            tokio::select! {
                status = &mut ended => break status?,
                read = keep_end(&mut output, &mut kept) => {
                    // The program closed its output and may still run.
                    if read? == 0 {
                        break ended.await?;
                    }
                }
            }
        }
    };
    let duration_seconds = started.elapsed().as_secs_f64();
    let rest = async {
        while keep_end(&mut output, &mut kept)
            .await
            .is_ok_and(|length| length > 0)
        {}
    };
    // Dropping the group kills the processes that the program left running.
    let _ = timeout(OUTPUT_PATIENCE, rest).await;
    drop(group);
    keep_limit(&mut kept);
    Ok(Execution {
        exit_code: status.code(),
        duration_seconds,
        output: String::from_utf8_lossy(&kept).into_owned(),
    })
}

/// Reads the available output. Cuts its beginning as soon as it exceeds twice the limit.
async fn keep_end(output: &mut Receiver, kept: &mut Vec<u8>) -> io::Result<usize> {
    let length = output.read_buf(kept).await?;
    // At twice the limit, because cutting moves all kept bytes.
    if kept.len() > 2 * OUTPUT_LIMIT_BYTES {
        keep_limit(kept);
    }
    Ok(length)
}

fn keep_limit(kept: &mut Vec<u8>) {
    let surplus = kept.len().saturating_sub(OUTPUT_LIMIT_BYTES);
    kept.drain(..surplus);
}

/// The process group of a program, killed on drop.
struct Group(Option<Pid>);

impl Group {
    fn of(leader: &Child) -> Self {
        let id = leader.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // The usual error is an empty group.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}
