//! Executes a candidate's program once each time it is asked to, in the candidate's own container: so that the
//! program's energy is that of the candidate's pod, and nothing of an execution is lost before somebody measures.
//!
//! It comes from the injector's image, and is linked statically to run in any other.
//!
//! - `GET` of any other path: 200, there is a runner;
//! - `POST /executions`: once the program has ended, 200 and an [`Execution`] in JSON; 500 where the program can't be
//!   started, and why. There is one execution at a time, and others wait for it. One whose connection is closed is
//!   killed.

mod execution;
mod install;

use std::{
    net::{Ipv4Addr, Ipv6Addr},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
};

use axum::{Json, Router, extract::State, http::StatusCode, routing::post};
use clap::{Parser, Subcommand};
use frugality_measure::batch::{EXECUTIONS_PATH, Execution};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    sync::Mutex,
};

/// Executes a program each time it is asked to.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Writes this program to a file, for another container.
    Install {
        /// The file; a folder for it is made
        file: PathBuf,
    },
    /// Executes a program at each POST of /executions.
    Serve {
        /// Port to listen on
        #[arg(long)]
        port: u16,
        /// The program and its arguments, after `--`
        #[arg(last = true, required = true)]
        program: Vec<String>,
    },
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let ended = match Cli::parse().command {
        Command::Install { file } => install::install(&file)
            .map_err(|error| format!("cannot write {}: {error}", file.display())),
        Command::Serve { port, program } => serve(port, program)
            .await
            .map_err(|error| format!("cannot listen on port {port}: {error}")),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What is executed, and by whom at the moment.
struct Program {
    argv: Vec<String>,
    turn: Mutex<()>,
}

/// Answers until it is told to end.
async fn serve(port: u16, argv: Vec<String>) -> std::io::Result<()> {
    let program = Arc::new(Program {
        argv,
        turn: Mutex::new(()),
    });
    let router = Router::new()
        .route(EXECUTIONS_PATH, post(execute))
        .fallback(|| async { StatusCode::OK })
        .with_state(program);
    // Takes IPv4 as well, where there is IPv6 at all.
    let both = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await;
    let listener = match both {
        Ok(listener) => listener,
        Err(_) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await?,
    };
    // The first process of a container is not ended by a signal that it does not ask for.
    let mut told = signal(SignalKind::terminate())?;
    tokio::select! {
        ended = axum::serve(listener, router) => ended,
        _ = told.recv() => Ok(()),
    }
}

async fn execute(
    State(program): State<Arc<Program>>,
) -> Result<Json<Execution>, (StatusCode, String)> {
    let _turn = program.turn.lock().await;
    let execution = execution::execute(&program.argv).await;
    execution.map(Json).map_err(|error| {
        let name = program.argv.first().map_or("", String::as_str);
        let why = format!("cannot execute {name}: {error}");
        (StatusCode::INTERNAL_SERVER_ERROR, why)
    })
}
