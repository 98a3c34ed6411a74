//! Executes a candidate's program once per request, in the candidate's own container. The meter therefore attributes
//! the program's energy to the candidate's pod, and the program runs only when the injector asks for an execution.
//!
//! The runner comes from the injector's image. It is linked statically, to run in every image.
//!
//! - `GET` of any other path: 200, the runner is ready;
//! - `POST /executions`: after the program has ended, 200 and an [`Execution`] in JSON. If the program cannot start,
//!   500 and the reason. The runner executes one program at a time; further requests wait. If the client closes the
//!   connection, the runner kills the program.

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

/// Executes a program once per request.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Copy this program to a file, for another container.
    Install {
        /// Path of the file. Missing folders are created
        file: PathBuf,
    },
    /// Execute a program at each POST of /executions.
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

/// The program, and the lock of the request that executes it.
struct Program {
    argv: Vec<String>,
    turn: Mutex<()>,
}

/// Serves until SIGTERM.
async fn serve(port: u16, argv: Vec<String>) -> std::io::Result<()> {
    let program = Arc::new(Program {
        argv,
        turn: Mutex::new(()),
    });
    let router = Router::new()
        .route(EXECUTIONS_PATH, post(execute))
        .fallback(|| async { StatusCode::OK })
        .with_state(program);
    // An IPv6 socket accepts IPv4 too. Without IPv6, listen on IPv4.
    let both = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await;
    let listener = match both {
        Ok(listener) => listener,
        Err(_) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await?,
    };
    // The kernel ignores SIGTERM to the first process of a container unless the process handles it.
    let mut reported = signal(SignalKind::terminate())?;
    tokio::select! {
        ended = axum::serve(listener, router) => ended,
        _ = reported.recv() => Ok(()),
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
