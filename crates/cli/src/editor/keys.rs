//! Keys that do something else than the editor's own.

use super::{SqlHelper, continuation, is_whole};
use rustyline::history::FileHistory;
use rustyline::{
    Cmd, ConditionalEventHandler, Editor, Event, EventContext, EventHandler, KeyCode, KeyEvent,
    Modifiers, RepeatCount,
};

/// Binds them. With `marked`, further lines begin with the second prompt.
pub fn bind(editor: &mut Editor<SqlHelper, FileHistory>, marked: bool) {
    let mut on = |code, modifiers, handler: EventHandler| {
        editor.bind_sequence(KeyEvent(code, modifiers), handler);
    };
    let handler = |always| EventHandler::Conditional(Box::new(Enter { marked, always }));
    on(KeyCode::Enter, Modifiers::NONE, handler(false));
    on(KeyCode::Char('J'), Modifiers::CTRL, handler(false));
    on(KeyCode::Enter, Modifiers::ALT, handler(true));
    // The history's entries that begin with what stands before the cursor.
    on(
        KeyCode::PageUp,
        Modifiers::NONE,
        Cmd::HistorySearchBackward.into(),
    );
    on(
        KeyCode::PageDown,
        Modifiers::NONE,
        Cmd::HistorySearchForward.into(),
    );
    on(
        KeyCode::Char('p'),
        Modifiers::ALT,
        Cmd::HistorySearchBackward.into(),
    );
    on(
        KeyCode::Char('n'),
        Modifiers::ALT,
        Cmd::HistorySearchForward.into(),
    );
}

/// Runs whole input; begins a further line in what is not whole, or always.
struct Enter {
    marked: bool,
    always: bool,
}

impl ConditionalEventHandler for Enter {
    fn handle(
        &self,
        _: &Event,
        _: RepeatCount,
        _: bool,
        context: &EventContext<'_>,
    ) -> Option<Cmd> {
        if !self.always && is_whole(context.line()) {
            return Some(Cmd::AcceptLine);
        }
        let before = &context.line()[..context.pos()];
        let mut line_end = String::from("\n");
        // A comment to the end of the line ends with it.
        let within = continuation::is_within_text(&format!("{before}\n"));
        if self.marked && !within {
            line_end.push(continuation::MARK);
        }
        Some(Cmd::Insert(1, line_end))
    }
}
