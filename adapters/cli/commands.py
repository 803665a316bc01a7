"""The commands, their arguments and what `--help` says of them."""

# ruff: noqa: PLC0415 - each command imports its work itself, so that `--help` starts at once

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer

from adapters.cli.running import Options, complain, run, run_plain
from adapters.printing import prepare_streams, say


def _examples(*commands: str) -> str:
    """The end of a help page; the mark keeps the lines apart."""
    return "\b\n" + "\n".join(["Examples:", *(f"  footnote {command}" for command in commands)])


app = typer.Typer(
    name="footnote",
    help="Answers questions from your own documents, with the page that each answer stands on.",
    epilog=_examples("ingest handbook.pdf", "ask 'How many days of leave do we have?'", "chat"),
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Home = Annotated[
    Path | None,
    typer.Option(
        "--home", metavar="DIR", help="Folder that keeps the library (else FOOTNOTE_HOME).", show_default=False
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def _circles(given: list[str] | None) -> list[str] | None:
    """An option that names nobody comes from an unset variable in a script, and must not mean everyone."""
    from adapters.circles import names

    if given and not all(names([value]) for value in given):
        message = "it names no circle. Name one, such as hr, or leave the option out."
        raise typer.BadParameter(message)
    return given or None


Asker = Annotated[
    list[str] | None,
    typer.Option(
        "--audience",
        metavar="CIRCLE",
        callback=_circles,
        help="Ask as somebody of this circle; may be repeated. Without it, only documents for everyone are found.",
    ),
]


def main() -> None:
    """The console script. Errors of usage exit with 2, as JSON when `--json` was given."""
    prepare_streams()
    try:
        code = app(standalone_mode=False, prog_name="footnote")
    except typer.Exit as leaving:
        code = leaving.exit_code
    except typer.Abort:
        code = 130
    except typer.TyperException as error:
        if "--json" in sys.argv:
            complain(Options(home=None, json=True), error.format_message())
        else:
            error.show()  # type: ignore[attr-defined] # all that is raised here can show itself with its usage line
        code = error.exit_code
    sys.exit(code if isinstance(code, int) else 0)


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it with the option's value
    if wanted:
        say(f"footnote {version('footnote-bot')}")
        raise typer.Exit


@app.callback()
def footnote(
    context: typer.Context,
    *,
    home: Home = None,
    show_version: Annotated[  # noqa: ARG001 - its callback acts on it
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Answers questions from your own documents, with the page that each answer stands on."""
    context.obj = home


@app.command(epilog=_examples("ingest report.pdf", "ingest docs/ 'notes/*.md'", "ingest --audience hr,board pay.pdf"))
def ingest(
    context: typer.Context,
    paths: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files, folders or patterns.")],
    audience: Annotated[
        list[str] | None,
        typer.Option(
            "--audience",
            metavar="CIRCLE",
            callback=_circles,
            help="Who may see the documents; may be repeated. Without it, a document that the library knows keeps its "
            "circles, and a new one is for everyone.",
        ),
    ] = None,
    *,
    home: Home = None,
    json: Json = False,
) -> None:
    """Take documents into the library: PDF, Markdown, HTML and plain text.

    A folder is searched with its subfolders; hidden files are left out. Each file gets a verdict. Ingesting a changed
    file again replaces it; an unchanged one is left alone. The exit code is 1 when a file could not be ingested.
    """
    from adapters.cli.ingest import ingest as work

    options = _options(context, home, json=json)
    run(options, lambda settings: work(settings, options, paths, audience))


@app.command(
    epilog=_examples("ask 'Who approves travel?'", "ask --json 'Who approves travel?'", "ask - < question.txt")
)
def ask(
    context: typer.Context,
    question: Annotated[
        list[str], typer.Argument(metavar="QUESTION...", help="The question; - reads it from standard input.")
    ],
    audience: Asker = None,
    *,
    home: Home = None,
    json: Json = False,
) -> None:
    """Answer one question, with its sources.

    The exit code is 0 when it was answered, 3 when the documents don't tell, 1 when something failed.
    """
    from adapters.cli.ask import ask as work

    options = _options(context, home, json=json)
    run_plain(options, lambda settings: work(settings, options, " ".join(question), audience or []))


@app.command(epilog=_examples("search 'travel expenses' --limit 3"))
def search(
    context: typer.Context,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Words or a question.")],
    limit: Annotated[int, typer.Option("--limit", min=1, max=100, help="How many passages at most.")] = 8,
    audience: Asker = None,
    *,
    home: Home = None,
    json: Json = False,
) -> None:
    """Show the passages that are found, without an answer."""
    from adapters.cli.ask import search as work

    options = _options(context, home, json=json)
    run(options, lambda settings: work(settings, options, query, limit, audience or []))


@app.command(epilog=_examples("chat", "chat --audience hr", "chat --continue", "chat < questions.txt"))
def chat(
    context: typer.Context,
    audience: Asker = None,
    *,
    goes_on: Annotated[
        bool, typer.Option("--continue", help="Go on with the last conversation: follow-ups know what was said.")
    ] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """Ask and follow up in the terminal; /help lists what it understands.

    Questions that are piped in are answered one by one, with --json one JSON object a line. What was not answered
    because the process died is answered at the next start; into a pipe's standard error, so that scripts go on as
    before. SIGTERM lets the answer under way come to its end, for FOOTNOTE_DRAIN_SECONDS, and exits with 143.
    """
    from adapters.terminal import chat as work

    options = _options(context, home, json=json)
    run_plain(options, lambda settings: work(settings, audience or [], as_json=json, goes_on=goes_on))


@app.command("run", epilog=_examples("run", "run --first-library docs"))
def start(
    context: typer.Context,
    first_library: Annotated[
        Path | None,
        typer.Option("--first-library", metavar="DIR", help="Folder to ingest when the library is empty."),
    ] = None,
    *,
    home: Home = None,
    json: Json = False,
) -> None:
    """Start Footnote: the terminal chat, as long as no chat platform is set up."""
    from adapters.cli.start import start as work

    options = _options(context, home, json=json)
    run_plain(options, lambda settings: work(settings, first_library, as_json=json))


@app.command(
    epilog=_examples(
        "history",
        "history --search 'travel expenses' --limit 3",
        "history --unanswered",
        "history --export past.jsonl",
        "history --erase slack:T01:U02",
    )
)
def history(  # noqa: PLR0913 - an argument is an option
    context: typer.Context,
    search: Annotated[
        str,
        typer.Option(
            "--search",
            metavar="WORDS",
            help="Only entries with all of these words, in the question, the reply or its sources.",
            show_default=False,
        ),
    ] = "",
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="ID", help="Only what this person asked; a listing shows everybody's id."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, max=1_000, help="How many entries at most; 10 when not given.")
    ] = None,
    before: Annotated[
        str | None,
        typer.Option("--before", metavar="TIME", help="Only what was asked before a time, or before an entry's id."),
    ] = None,
    export: Annotated[
        str | None,
        typer.Option("--export", metavar="FILE", help="Write all that fits as JSON Lines, oldest first; - prints it."),
    ] = None,
    erase: Annotated[
        str | None,
        typer.Option("--erase", metavar="USER", help="Erase all that this person asked, and their opinions."),
    ] = None,
    *,
    unanswered: Annotated[
        bool, typer.Option("--unanswered", help="Only questions that got no answer: what the documents lack.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Erase without being asked.")] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """List what was asked and what came of it, newest first: reply or refusal, sources, who asked, opinions.

    All entries are listed, whoever asked and whoever may see them. They are kept for FOOTNOTE_HISTORY_DAYS days.
    Listing and exporting work while Footnote runs; to erase, stop it first unless REDIS_URL is set.
    """
    from adapters.cli.history import Asked
    from adapters.cli.history import history as work

    options = _options(context, home, json=json)
    asked = Asked(
        search=search,
        user=user,
        unanswered=unanswered,
        limit=limit,
        before=before,
        export=export,
        erase=erase,
        yes=yes,
    )
    run_plain(options, lambda settings: work(settings, options, asked))


@app.command(epilog=_examples("worker"))
def worker(context: typer.Context, *, home: Home = None, json: Json = False) -> None:
    """Run the ingestions that were asked for on chat platforms, beside the processes that answer there.

    It needs a Redis (REDIS_URL) and a Qdrant server (QDRANT_URL), which it shares with the others; any number of
    workers may run, each doing FOOTNOTE_JOBS_AT_ONCE ingestions at a time. Without them `footnote run` does it all in
    one process, and no worker is needed.

    It runs until SIGTERM or Ctrl-C. Ingestions under way may then come to their end for FOOTNOTE_DRAIN_SECONDS; what is
    not done by then goes back, and the next worker goes on with the documents that are left. The same happens when a
    worker dies. With FOOTNOTE_LOG_LEVEL=info each ingestion is logged.
    """
    from adapters.cli.worker import worker as work

    options = _options(context, home, json=json)
    run(options, lambda settings: work(settings, options))


@app.command(epilog=_examples("documents", "documents --audience hr --json"))
def documents(
    context: typer.Context,
    *,
    audience: Annotated[
        list[str] | None,
        typer.Option(
            "--audience",
            metavar="CIRCLE",
            callback=_circles,
            help="List only what somebody of this circle may see, with what is for everyone; may be repeated.",
        ),
    ] = None,
    home: Home = None,
    json: Json = False,
) -> None:
    """List all documents in the library, whoever may see them; with --audience, only those that a circle may see."""
    from adapters.cli.library import documents as work

    options = _options(context, home, json=json)
    run(options, lambda settings: work(settings, options, audience or []))


@app.command(epilog=_examples("forget 'Travel policy'", "forget 3f2a9c1e"))
def forget(
    context: typer.Context,
    document: Annotated[str, typer.Argument(metavar="ID|TITLE", help="The document's id, title or file name.")],
    *,
    home: Home = None,
    json: Json = False,
) -> None:
    """Take a document out of the library, at once. The file itself is not touched.

    When several documents could be meant they are listed, nothing is done, and the exit code is 2.
    """
    from adapters.cli.library import forget as work

    options = _options(context, home, json=json)
    run(options, lambda settings: work(settings, options, document))


@app.command()
def reindex(
    context: typer.Context,
    *,
    start_over: Annotated[
        bool, typer.Option("--start-over", help="Make an empty library when the present one cannot be read any more.")
    ] = False,
    home: Home = None,
    json: Json = False,
) -> None:
    """Rebuild the library with the present settings, from the documents' own files.

    Documents whose files are gone are carried over with the text that the library holds. The old library stays until
    the new one is complete.
    """
    from adapters.cli.reindex import reindex as work

    options = _options(context, home, json=json)
    run(options, lambda settings: work(settings, options, start_over=start_over))


@app.command("eval", epilog=_examples("eval sets/handbook", "eval sets/* --json"))
def evaluate(
    context: typer.Context,
    set_dirs: Annotated[
        list[Path], typer.Argument(metavar="SET_DIR...", help="Folders with corpus.jsonl, queries.jsonl and qrels.tsv.")
    ],
    *,
    home: Home = None,
    json: Json = False,
) -> None:
    """Measure search and refusals on question sets, each in a temporary library.

    corpus.jsonl has a line {"_id": …, "title": …, "text": …} for each document, queries.jsonl {"_id": …, "text": …} for
    each question, and qrels.tsv, after a header, the question's id, the document's id and a grade, parted by tabs. A
    question that the corpus does not answer is marked so in queries.jsonl: {"_id": …, "text": …, "answerable": false}.
    """
    from adapters.cli.evaluate import evaluate_sets as work

    options = _options(context, home, json=json)
    run(options, lambda settings: work(settings, options, set_dirs))


@app.command()
def doctor(context: typer.Context, *, home: Home = None, json: Json = False) -> None:
    """Check the settings, the library and the models, and say what to do. The exit code is 1 when something fails."""
    from adapters.cli.doctor import doctor as work

    options = _options(context, home, json=json)
    raise typer.Exit(work(options))


def _options(context: typer.Context, home: Path | None, *, json: bool) -> Options:
    return Options(home=home or context.obj, json=json)
