//! `sudare man`: a manual page of the command, and of each subcommand.

use super::{bytes, say};
use crate::args::{self, Args};
use crate::error::{CliError, InFile};
use crate::files::{self, Access, Output, Whole};
use clap::{Command, CommandFactory};
use clap_mangen::Man;

pub fn man(args: &Args, a: &args::Manual) -> Result<(), CliError> {
    std::fs::create_dir_all(&a.output).in_file(&a.output)?;
    let mut command = Args::command().disable_help_subcommand(true);
    // Gives subcommands their whole names.
    command.build();
    let mut pages = Vec::new();
    write(&command, a, &mut pages)?;
    let total = pages.iter().map(Whole::size).sum();
    say(args, format!("{}  {}  {} pages: man -l FILE shows one", a.output.display(), bytes(total), pages.len()))?;
    files::place(pages, args.existing())
}

fn write(command: &Command, a: &args::Manual, pages: &mut Vec<Whole>) -> Result<(), CliError> {
    let page = Man::new(command.clone());
    let path = a.output.join(page.get_filename());
    let mut out = Output::create(&path, Access::Usual)?;
    page.render(&mut out).in_file(&path)?;
    pages.push(out.finish()?);
    command.get_subcommands().filter(|sub| !sub.is_hide_set()).try_for_each(|sub| write(sub, a, pages))
}
