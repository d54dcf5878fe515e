//! The `quintet` command: race the tables against their rivals, torture them, share a cache, choose
//! one.
#![deny(unsafe_code)]

mod args;
#[cfg(target_os = "linux")]
mod cache;
mod choose;
mod fail;
mod nearest;
mod output;
#[cfg(feature = "race")]
mod race;
#[cfg(feature = "torture")]
mod torture;
mod ui;

use args::{Cli, Command};
use clap::Parser;
use fail::{Exit, Fail};

fn main() -> std::process::ExitCode {
    let exit = match Cli::try_parse() {
        Ok(cli) => run(cli.command.unwrap_or_default()),
        Err(error) => args::explain(error),
    };
    exit.unwrap_or_else(|fail| fail.show()).into()
}

fn run(command: Command) -> Result<Exit, Fail> {
    output::listen_to_interrupts();
    match command {
        #[cfg(feature = "race")]
        Command::Race(args) => race::run(&args),
        #[cfg(feature = "race")]
        Command::Weigh(args) => race::weigh(&args),
        #[cfg(feature = "race")]
        Command::Lap(args) => race::lap(&args),
        #[cfg(feature = "torture")]
        Command::Torture(args) => torture::run(&args),
        #[cfg(target_os = "linux")]
        Command::Cache(args) => cache::run(&args),
        Command::Choose => choose::run(),
    }
}
