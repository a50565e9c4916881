//! Every command, in the order of the help.

use super::arguments::{
    Arguments, expanded, format, on_or_off, pset, separator, set, variable, watch,
};
use super::{Command, copy, path};

/// A command as this table tells of it.
pub struct Spec {
    /// Its names; the first is the one for messages.
    pub names: &'static [&'static str],
    /// What it takes.
    pub usage: &'static str,
    /// What it does.
    pub help: &'static str,
    pub(super) read: fn(&Arguments<'_>) -> Result<Command, String>,
}

/// Every command, in the order of the help.
pub const COMMANDS: &[Spec] = &[
    Spec {
        names: &["\\?", "\\h", "\\help", ".help"],
        usage: "[word]",
        help: "this help, or what of it has a word",
        read: |arguments| Ok(Command::Help(arguments.optional()?.map(str::to_owned))),
    },
    Spec {
        names: &["\\q", "\\quit", "exit", "quit", ".exit", ".quit"],
        usage: "",
        help: "leave (as Ctrl-D)",
        read: |_| Ok(Command::Quit),
    },
    Spec {
        names: &["\\d", "\\d+", ".describe"],
        usage: "[name]",
        help: "tables and views, or the columns of one; \\d+: with comments",
        read: |arguments| {
            let name = arguments.optional()?.map(str::to_owned);
            Ok(match arguments.more {
                true => Command::DescribeMore(name),
                false => Command::Describe(name),
            })
        },
    },
    Spec {
        names: &["\\dt", "\\dt+", ".tables"],
        usage: "[part|pattern]",
        help: "tables: all, by a part of the name, or by a pattern such as sales*, other.*",
        read: |arguments| Ok(Command::Tables(arguments.pattern()?, arguments.more)),
    },
    Spec {
        names: &["\\dv", "\\dv+"],
        usage: "[part|pattern]",
        help: "views",
        read: |arguments| Ok(Command::Views(arguments.pattern()?, arguments.more)),
    },
    Spec {
        names: &["\\dn"],
        usage: "",
        help: "schemas",
        read: |arguments| arguments.none(Command::Schemas),
    },
    Spec {
        names: &["\\di", "\\di+"],
        usage: "",
        help: "indexes",
        read: |arguments| arguments.none(Command::Indexes),
    },
    Spec {
        names: &["\\l", "\\l+", ".databases"],
        usage: "",
        help: "the database",
        read: |arguments| arguments.none(Command::Databases),
    },
    Spec {
        names: &["\\df"],
        usage: "[part|pattern]",
        help: "functions",
        read: |arguments| Ok(Command::Functions(arguments.pattern()?)),
    },
    Spec {
        names: &[".schema"],
        usage: "[part|pattern]",
        help: "CREATE statements of tables and views",
        read: |arguments| Ok(Command::Schema(arguments.pattern()?)),
    },
    Spec {
        names: &["\\i", "\\include", ".read"],
        usage: "FILE",
        help: "run the statements of a file",
        read: |arguments| Ok(Command::Include(path(arguments.one("a file")?))),
    },
    Spec {
        names: &["\\e", "\\edit", ".edit"],
        usage: "[FILE]",
        help: "edit the last statement, or a file, and run it (EDITOR, vi)",
        read: |arguments| Ok(Command::Edit(arguments.optional()?.map(path))),
    },
    Spec {
        names: &["\\o", "\\out", ".output"],
        usage: "[FILE]",
        help: "results into a file; without a name, to the screen again",
        read: |arguments| Ok(Command::Output(arguments.optional()?.map(path))),
    },
    Spec {
        names: &[".once"],
        usage: "FILE",
        help: "the next result into a file",
        read: |arguments| Ok(Command::Once(path(arguments.one("a file")?))),
    },
    Spec {
        names: &[".dump"],
        usage: "[part|pattern]",
        help: "a script that makes tables and views anew, with their rows",
        read: |arguments| Ok(Command::Dump(arguments.pattern()?)),
    },
    Spec {
        names: &["\\set"],
        usage: "[name [value]]",
        help: "a variable for statements: :name, :'name', :\"name\"; without a name, all",
        read: |arguments| set(&arguments.words),
    },
    Spec {
        names: &["\\unset"],
        usage: "name",
        help: "forget a variable",
        read: |arguments| Ok(Command::Unset(variable(arguments.one("a name")?)?)),
    },
    Spec {
        names: &["\\copy"],
        usage: "TABLE|(QUERY) FROM|TO FILE [options]",
        help: "rows from or into a file",
        read: |arguments| Ok(Command::Copy(copy::statement(arguments.text)?)),
    },
    Spec {
        names: &[".import"],
        usage: "FILE TABLE",
        help: "rows of a file into a table, which is made if there is none",
        read: |arguments| match &arguments.words[..] {
            [file, table] => Ok(Command::Import {
                file: path(file).to_string_lossy().into_owned(),
                table: table.clone(),
            }),
            _ => Err("a file and a table are needed".to_owned()),
        },
    },
    Spec {
        names: &["\\g", "\\gx"],
        usage: "",
        help: "run the statement, as ';' does; \\gx: with one line per value",
        read: |arguments| arguments.none(Command::Go),
    },
    Spec {
        names: &["\\watch"],
        usage: "[seconds] [c=times]",
        help: "run the last statement again and again, until Ctrl-C",
        read: |arguments| watch(&arguments.words),
    },
    Spec {
        names: &["\\x"],
        usage: "[on|off|auto]",
        help: "one line per value; auto: where a table is wider than the screen",
        read: |arguments| {
            let word = arguments.optional()?;
            Ok(Command::Expanded(word.map(expanded).transpose()?))
        },
    },
    Spec {
        names: &["\\timing", ".timer"],
        usage: "[on|off]",
        help: "tell the time of each statement",
        read: |arguments| Ok(Command::Timing(arguments.switch()?)),
    },
    Spec {
        names: &["\\pager", ".pager"],
        usage: "[on|off]",
        help: "page results that are longer than the screen (ERIS_PAGER, PAGER, less)",
        read: |arguments| Ok(Command::Pager(arguments.switch()?)),
    },
    Spec {
        names: &[".mode", "\\mode"],
        usage: "[table|csv|json|jsonl|markdown|line]",
        help: "form of results",
        read: |arguments| {
            Ok(Command::Mode(
                arguments.optional()?.map(format).transpose()?,
            ))
        },
    },
    Spec {
        names: &[".headers", ".header"],
        usage: "on|off",
        help: "names of columns above results",
        read: |arguments| {
            Ok(Command::Headers(Some(on_or_off(
                arguments.one("on or off")?,
            )?)))
        },
    },
    Spec {
        names: &["\\t"],
        usage: "[on|off]",
        help: "rows only, without names of columns",
        read: |arguments| Ok(Command::Headers(arguments.switch()?.map(|on| !on))),
    },
    Spec {
        names: &[".nullvalue"],
        usage: "TEXT",
        help: "what stands for NULL",
        read: |arguments| Ok(Command::NullValue(arguments.one("a text")?.to_owned())),
    },
    Spec {
        names: &[".separator"],
        usage: "TEXT",
        help: "what separates the fields of CSV",
        read: |arguments| separator(arguments.one("a text")?),
    },
    Spec {
        names: &[".maxrows"],
        usage: "N",
        help: "most rows of a table on the screen, 0 for all",
        read: |arguments| Ok(Command::MaxRows(arguments.number()?)),
    },
    Spec {
        names: &[".maxwidth"],
        usage: "N",
        help: "width to which tables are fitted, 0 for that of the screen",
        read: |arguments| Ok(Command::MaxWidth(arguments.number()?)),
    },
    Spec {
        names: &[".echo"],
        usage: "on|off",
        help: "print each statement before it runs",
        read: |arguments| Ok(Command::Echo(on_or_off(arguments.one("on or off")?)?)),
    },
    Spec {
        names: &["\\pset", ".show"],
        usage: "[null|format|expanded|pager|columns|fieldsep [value]]",
        help: "settings, by psql's names; without a name, all of them",
        read: |arguments| pset(&arguments.words),
    },
    Spec {
        names: &["\\echo", "\\qecho", ".print"],
        usage: "[text]",
        help: "print a text",
        read: |arguments| Ok(Command::Print(arguments.words.join(" "))),
    },
    Spec {
        names: &["\\cd", ".cd"],
        usage: "[directory]",
        help: "change the working directory, to which names of files are relative",
        read: |arguments| Ok(Command::Directory(arguments.optional()?.map(path))),
    },
    Spec {
        names: &["\\!", ".shell", ".system"],
        usage: "[command]",
        help: "a command of the operating system, or its shell",
        read: |arguments| Ok(Command::System(arguments.text.to_owned())),
    },
];
