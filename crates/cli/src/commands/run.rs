//! Running commands.

use super::describe::{self, Kinds};
use super::{COMMANDS, Command, CommandError, parse, path};
use crate::format::{Expanded, Format};
use crate::numbers::duration;
use crate::runner::{Flow, Runner};
use crate::script_error::ScriptError;
use crate::units::CommandLine;
use clap::ValueEnum;
use eris_sql::Statement;
use std::borrow::Cow;
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use unicode_width::UnicodeWidthStr;

/// What `\di` shows.
const INDEXES: &str =
    "SELECT schema, \"table\", name, columns, kind, bytes FROM eris.indexes ORDER BY ALL";

/// What `\l` shows.
const DATABASES: &str = "SELECT DISTINCT catalog_name AS database FROM information_schema.schemata";

/// Files may include each other this deep.
const DEPTH: usize = 16;

impl Runner {
    /// Runs a command.
    pub(crate) async fn command(&mut self, line: &CommandLine) -> Result<Flow, ScriptError> {
        let failed = |error| ScriptError::Command {
            start: line.start,
            error,
        };
        let text = self.with_variables(&line.text);
        match parse(&text).map_err(failed)? {
            Command::Quit => return Ok(Flow::Quit),
            Command::Include(file) => return self.include(&file).await,
            Command::Edit(file) => return self.edit(file, &failed).await,
            Command::Copy(copy) => self.made_up(copy).await?,
            Command::Indexes => self.made_up(INDEXES.to_owned()).await?,
            Command::Databases => self.made_up(DATABASES.to_owned()).await?,
            Command::Import { file, table } => {
                let import = describe::import(&self.session, &file, &table);
                self.made_up(import).await?;
            }
            Command::Watch { every, times } => {
                let Some(statement) = self.last.clone() else {
                    let reason = "\\watch: there is no statement to repeat".to_owned();
                    return Err(failed(CommandError::Failed(reason)));
                };
                self.watch(&statement, every, times).await?;
            }
            Command::Output(file) => {
                let redirected = self.output.redirect(file.as_deref());
                redirected.map_err(|error| {
                    let name = file.unwrap_or_default();
                    let reason = format!("cannot write '{}': {error}", name.display());
                    failed(CommandError::Failed(reason))
                })?;
            }
            Command::Once(file) => {
                self.output.redirect(Some(&file)).map_err(|error| {
                    let reason = format!("cannot write '{}': {error}", file.display());
                    failed(CommandError::Failed(reason))
                })?;
                self.once = true;
            }
            Command::Dump(part) => self.dump(&part, &failed).await?,
            Command::Set(None) => {
                let text = self.variables.listed();
                self.print_text(&text)?;
            }
            Command::Set(Some((name, value))) => self.variables.set(&name, value),
            Command::Unset(name) => self.variables.unset(&name),
            Command::Print(text) => writeln!(self.output, "{text}")?,
            Command::Directory(directory) => {
                let directory = directory.or_else(std::env::home_dir).unwrap_or_default();
                std::env::set_current_dir(&directory).map_err(|error| {
                    let reason = format!("cannot enter '{}': {error}", directory.display());
                    failed(CommandError::Failed(reason))
                })?;
            }
            Command::System(command) => self.system(&command).map_err(failed)?,
            command => self.at_once(command, &failed)?,
        }
        Ok(Flow::Continue)
    }

    /// A command with the values of variables, as psql has them: not what is for the system, nor `\copy`.
    fn with_variables<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let is_plain = ["\\!", "\\copy", ".shell", ".system"];
        match is_plain.iter().any(|plain| text.starts_with(plain)) {
            true => Cow::Borrowed(text),
            false => self.variables.written_out(text),
        }
    }

    /// Commands that need no waiting.
    fn at_once(
        &mut self,
        command: Command,
        failed: &dyn Fn(CommandError) -> ScriptError,
    ) -> Result<(), ScriptError> {
        let session = self.session.clone();
        match command {
            Command::Describe(name) => self.describe(name.as_deref(), false, failed),
            Command::DescribeMore(name) => self.describe(name.as_deref(), true, failed),
            Command::Tables(part, more) => {
                self.print_batch(&describe::list(&session, &part, Kinds::Tables, more))
            }
            Command::Views(part, more) => {
                self.print_batch(&describe::list(&session, &part, Kinds::Views, more))
            }
            Command::Schemas => self.print_batch(&describe::schemas(&session)),
            Command::Functions(part) => {
                self.print_batch(&describe::functions(session.database(), &part))
            }
            Command::Schema(part) => {
                let text = describe::definitions(&session, &part);
                self.print_text(&text)
            }
            Command::Help(word) => match help(word.as_deref()) {
                Some(text) => self.print_text(&text),
                None => Err(failed(CommandError::Failed(format!(
                    "no command has \"{}\" in its help\nhint: \\? lists all",
                    word.unwrap_or_default()
                )))),
            },
            Command::Settings => {
                let text = self.told();
                self.print_text(&text)
            }
            Command::Mode(None) => {
                let text = format!("mode: {}\n", name(self.settings.format));
                self.print_text(&text)
            }
            setting => {
                if let Some(told) = self.set(setting) {
                    writeln!(self.output, "{told}")?;
                }
                Ok(())
            }
        }
    }

    /// Shows one table or view, or lists those that are meant.
    fn describe(
        &mut self,
        name: Option<&str>,
        more: bool,
        failed: &dyn Fn(CommandError) -> ScriptError,
    ) -> Result<(), ScriptError> {
        let session = self.session.clone();
        let name = match name {
            Some(name) if !describe::is_pattern(name) => name,
            pattern => {
                let pattern = pattern.unwrap_or_default();
                let listed = describe::list(&session, pattern, Kinds::All, more);
                return self.print_batch(&listed);
            }
        };
        let (title, columns, rest) = describe::relation(&session, name, more)
            .map_err(|reason| failed(CommandError::Failed(reason)))?;
        let for_people = self.settings.format.is_for_people();
        if for_people {
            writeln!(self.output, "{title}")?;
        }
        self.print_batch(&columns)?;
        if for_people {
            write!(self.output, "{rest}")?;
        }
        Ok(())
    }

    /// Changes a setting; what to tell, where the command alone does not say what it did.
    fn set(&mut self, command: Command) -> Option<String> {
        let settings = &mut self.settings;
        let on_off = |on| if on { "on" } else { "off" };
        match command {
            Command::Timing(wish) => {
                settings.timer = wish.unwrap_or(!settings.timer);
                wish.is_none()
                    .then(|| format!("timing is {}", on_off(settings.timer)))
            }
            Command::Pager(wish) => {
                settings.pager = wish.unwrap_or(!settings.pager);
                wish.is_none()
                    .then(|| format!("pager is {}", on_off(settings.pager)))
            }
            Command::Expanded(wish) => {
                settings.expanded = wish.unwrap_or(match settings.expanded {
                    Expanded::Off => Expanded::On,
                    Expanded::On | Expanded::Auto => Expanded::Off,
                });
                wish.is_none().then(|| {
                    format!(
                        "expanded display is {}",
                        on_off(settings.expanded == Expanded::On)
                    )
                })
            }
            Command::Mode(Some(format)) => {
                settings.format = format;
                None
            }
            Command::Headers(wish) => {
                settings.headers = wish.unwrap_or(!settings.headers);
                wish.is_none()
                    .then(|| format!("names of columns are {}", on_off(settings.headers)))
            }
            Command::NullValue(text) => {
                settings.null = Some(text);
                None
            }
            Command::Separator(text) => {
                settings.separator = text;
                None
            }
            Command::Echo(on) => {
                settings.echo = on;
                None
            }
            Command::MaxRows(rows) => {
                settings.max_rows = Some(rows);
                None
            }
            Command::MaxWidth(width) => {
                settings.max_width = width;
                None
            }
            // `\g` has done its work when the script was cut; the others never come here.
            _ => None,
        }
    }

    fn told(&self) -> String {
        let settings = &self.settings;
        let on_off = |on| if on { "on" } else { "off" };
        let expanded = match settings.expanded {
            Expanded::Auto => "auto",
            other => on_off(other == Expanded::On),
        };
        let rows = match settings.max_rows {
            None => "automatic".to_owned(),
            Some(rows) => rows.to_string(),
        };
        let lines = [
            ("format", name(settings.format)),
            ("expanded", expanded.to_owned()),
            ("headers", on_off(settings.headers).to_owned()),
            (
                "null",
                settings
                    .null
                    .clone()
                    .unwrap_or_else(|| "of the format".to_owned()),
            ),
            ("fieldsep", format!("{:?}", settings.separator)),
            ("timing", on_off(settings.timer).to_owned()),
            ("pager", on_off(settings.pager).to_owned()),
            ("maxrows", rows),
            ("maxwidth", settings.max_width.to_string()),
            ("echo", on_off(settings.echo).to_owned()),
        ];
        lines
            .map(|(name, value)| format!("{name:<10}{value}\n"))
            .concat()
    }

    /// Runs a statement that a command stands for.
    async fn made_up(&mut self, text: String) -> Result<(), ScriptError> {
        self.statement(&Statement::from(text), self.settings.pager)
            .await
    }

    /// Runs a file.
    pub(super) async fn include(&mut self, file: &Path) -> Result<Flow, ScriptError> {
        let included = |error| ScriptError::Included {
            file: file.to_owned(),
            error: Box::new(error),
        };
        if self.depth >= DEPTH {
            let deep = std::io::Error::other("files include each other too deep");
            return Err(included(ScriptError::Read(deep)));
        }
        let text = std::fs::read_to_string(file);
        let text = text.map_err(|error| included(ScriptError::Read(error)))?;
        self.depth += 1;
        let outcome = Box::pin(self.run(&text)).await;
        self.depth -= 1;
        outcome.map_err(included)
    }

    async fn watch(
        &mut self,
        statement: &Statement,
        every: Duration,
        times: Option<u32>,
    ) -> Result<(), ScriptError> {
        for round in 1.. {
            self.statement(statement, false).await?;
            self.output.flush()?;
            if times.is_some_and(|times| round >= times) || self.interrupt().is_heard() {
                break;
            }
            if round == 1 && self.output.is_terminal() {
                eprintln!("every {}, until Ctrl-C", duration(every));
            }
            tokio::time::sleep(every).await;
        }
        Ok(())
    }

    fn system(&mut self, command: &str) -> Result<(), CommandError> {
        let failed = |reason| CommandError::Failed(format!("\\!: {reason}"));
        self.output
            .flush()
            .map_err(|error| failed(error.to_string()))?;
        let mut shell = match command {
            "" => {
                let shell = std::env::var_os("SHELL").unwrap_or_else(|| "sh".into());
                std::process::Command::new(path(&shell.to_string_lossy()))
            }
            command => {
                let mut shell = std::process::Command::new("sh");
                shell.args(["-c", command]);
                shell
            }
        };
        let status = shell.status().map_err(|error| failed(error.to_string()))?;
        match status.code() {
            Some(0) | None => Ok(()),
            Some(code) => Err(failed(format!("exit status {code}"))),
        }
    }
}

fn name(format: Format) -> String {
    let value = format.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// What `\?` shows: all, or the commands that have the word in their line.
fn help(word: Option<&str>) -> Option<String> {
    const LEFT: usize = 44;
    let lines = COMMANDS.iter().map(|spec| {
        let names = spec.names.iter().filter(|name| !name.ends_with('+'));
        let names = names.copied().collect::<Vec<_>>().join(", ");
        let left = format!("{names} {}", spec.usage);
        let gap = match LEFT.checked_sub(left.width()) {
            Some(fill) => " ".repeat(fill),
            None => format!("\n  {}", " ".repeat(LEFT)),
        };
        format!("  {left}{gap}  {}\n", spec.help)
    });
    if let Some(word) = word {
        let word = word.to_lowercase();
        let found: String = lines
            .filter(|line| line.to_lowercase().contains(&word))
            .collect();
        return Some(found).filter(|found| !found.is_empty());
    }
    let mut text = String::from(
        "Statements end in ';' and may span lines. Commands stand on a line of their own.\n\n",
    );
    text.extend(lines);
    text.push_str(
        "
  Tab completes · Ctrl-R and PageUp search the history · Alt-Enter begins a line
  Ctrl-C cancels the running statement, or forgets the input

Examples:
  \\d lineorder                              columns of a table
  \\copy t from data.csv (format csv)        rows of a file into a table
  SELECT count(*) FROM t \\watch 5           run it every five seconds
  .mode csv                                 then \\o t.csv and SELECT * FROM t; for a file
  SHOW TABLES; DESCRIBE t; EXPLAIN [ANALYZE] SELECT …;
",
    );
    Some(text)
}
