"""Verbs on real motion: memory find, memory list; library add, list, remove."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import tyro
from tyro.conf import Positional

from jigdoll.cli.shared import Json, answering, progress_bar

Cache = Annotated[Path | None, tyro.conf.arg(help="The cache folder of your library; JIGDOLL_CACHE or the platform's.")]


def memory() -> None:
    """Real motion that ships with jigdoll: memory find, memory list."""


def library() -> None:
    """Your own clips, found by words before the shipped ones: library add, library list, library remove."""


def memory_find(
    sentence: Positional[str],
    file: Positional[str | None] = None,
    /,
    *,
    count: int = 5,
    cache: Cache = None,
    as_json: Json = False,
) -> None:
    """What real motion is found for a sentence, on the body of a file or, without one, of a person.

    Args:
        sentence: For instance "a drunk man staggers".
        file: A character: a file or zoo:NAME.
        count: How many segments are shown per action.
    """
    from rich.table import Table

    from jigdoll.character import open_character
    from jigdoll.language import read
    from jigdoll.language.encoder import open_encoder
    from jigdoll.language.meaning import understood
    from jigdoll.memory.find import find, refusal
    from jigdoll.memory.library import open_memories
    from jigdoll.rig.anatomy import anatomy_of
    from jigdoll.rig.reparent import reparent

    encoder = open_encoder()
    known = open_memories(encoder, cache)
    request, notes = understood(read(sentence), encoder)
    anatomy = anatomy_of(reparent(open_character(file or "zoo:human", sentence)).asset)
    notes += tuple(f"{word!r} is not understood" for word in request.unknown)
    answers: list[dict[str, Any]] = []
    for action in request.actions:
        found = find(known, request, action, anatomy, encoder, count=count)
        rows = [{"score": f.score, **asdict(f.words)} for f in found]
        problem = None if found else refusal(known, request, action, anatomy, encoder)
        answers.append({"action": action.name, "word": action.word, "found": rows, "problem": problem})
    with answering(as_json) as answer:
        answer.add({"sentence": sentence, "body": anatomy.kind, "actions": answers, "notes": list(notes)})
        for note in notes:
            answer.say(f"note: {note}")
        if not answers:
            answer.say(f"{sentence!r}: no action was found in it; say what it does, such as walks, jumps, waves")
        for row in answers:
            if row["problem"]:
                answer.say(row["problem"])
                continue
            table = Table("score", "action", "who", "seconds", "style", "text", "source", title=row["word"])
            for hit in row["found"]:
                style = ", ".join(hit["style"])
                score, seconds = f"{hit['score']:.2f}", f"{hit['seconds']:.1f}"
                table.add_row(score, hit["action"], hit["noun"], seconds, style, hit["text"], hit["source"])
            answer.show(table)


def memory_list(*, as_json: Json = False) -> None:
    """What the shipped memory holds: for each kind of body the actions, with how many segments and seconds."""
    from rich.table import Table

    from jigdoll.memory.contents import contents
    from jigdoll.memory.segments import open_memory

    rows = contents(open_memory())
    table = Table("body", "actions (segments)", "seconds")
    for row in rows:
        actions = ", ".join(f"{name.replace('_', ' ')} ({count})" for name, count in row.actions.items())
        table.add_row(row.kind, actions, f"{row.seconds:.0f}")
    with answering(as_json) as answer:
        answer.add({"bodies": [asdict(row) for row in rows]})
        answer.show(table)


def library_add(source: Positional[Path], /, *, cache: Cache = None, as_json: Json = False) -> None:
    """Add the clips of a folder, a BVH, GLB or FBX file, or a zip of them to your own library.

    Clips are named by the words in the names of files and clips; a table `words.tsv` beside them (columns file, clip,
    text, action) says it better. Nothing leaves your machine.

    Args:
        source: A folder, with all in it, or a file.
    """
    from jigdoll.language.encoder import open_encoder
    from jigdoll.memory.library import add, library_folder

    with answering(as_json) as answer:
        with progress_bar() as progress:
            added = add(source, open_encoder(), folder=cache, progress=progress)
        for clip in added.new:
            answer.say(f"{clip.words.action:<14} {clip.words.seconds:6.1f} s  {clip.words.text}  ({clip.file})")
        for name, problem in added.skipped:
            answer.say(f"skipped: {name}: {problem}")
        answer.say(
            f"{len(added.new)} clips added, {added.known} were there already, {len(added.skipped)} files skipped; "
            f"the library is in {library_folder(cache)}"
        )
        answer.add({"added": [asdict(clip) for clip in added.new], "known": added.known})
        answer.add({"skipped": [{"file": name, "problem": problem} for name, problem in added.skipped]})
        answer.add({"folder": str(library_folder(cache))})


def library_list(*, cache: Cache = None, as_json: Json = False) -> None:
    """What is in your own library."""
    from rich.table import Table

    from jigdoll.memory.library import clips

    own = clips(cache)
    table = Table("key", "action", "body", "seconds", "text", "file")
    for clip in own:
        words = clip.words
        table.add_row(clip.key[:8], words.action, words.kind, f"{words.seconds:.1f}", words.text, clip.file)
    with answering(as_json) as answer:
        answer.add({"clips": [asdict(clip) for clip in own]})
        answer.show(table if own else "the library is empty; `jigdoll library add FOLDER` fills it")


def library_remove(what: Positional[str], /, *, cache: Cache = None, as_json: Json = False) -> None:
    """Remove clips from your own library; the files that they came from stay.

    Args:
        what: A part of their key, file, clip name or text, or `all`.
    """
    from jigdoll.memory.library import remove

    gone = remove(what, cache)
    with answering(as_json) as answer:
        answer.add({"removed": [asdict(clip) for clip in gone]})
        answer.say(f"{len(gone)} clips removed")
