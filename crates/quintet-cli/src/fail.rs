//! How the command ends: exit codes, and errors of at most three lines.

use std::process::ExitCode;

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All went well, the answer is yes.
    Fine,
    /// The answer is no: a wrong result, a violation, a failed check.
    No,
    /// Wrong use, or an environment that does not allow it.
    Misuse,
    /// Stopped by Ctrl-C.
    Interrupted,
}

impl Exit {
    /// The process's exit code.
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Fine => 0,
            Exit::No => 1,
            Exit::Misuse => 2,
            Exit::Interrupted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// An error for people: what happened, why, what to do. Each is one line.
#[derive(Debug)]
pub(crate) struct Fail {
    exit: Exit,
    lines: [String; 3],
}

impl Fail {
    /// Wrong use, or an environment that does not allow it.
    pub(crate) fn misuse(
        what: impl Into<String>,
        why: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { exit: Exit::Misuse, lines: [what.into(), why.into(), advice.into()] }
    }

    /// The answer is no.
    pub(crate) fn no(
        what: impl Into<String>,
        why: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { exit: Exit::No, lines: [what.into(), why.into(), advice.into()] }
    }

    /// Prints the lines that say something and gives the exit code.
    pub(crate) fn show(&self) -> Exit {
        let marks = ["error: ", "  why: ", "   do: "];
        for (mark, line) in marks.into_iter().zip(&self.lines).filter(|(_, line)| !line.is_empty())
        {
            eprintln!("{mark}{}", line.replace('\n', " "));
        }
        self.exit
    }
}
