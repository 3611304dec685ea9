"""Trains the pocket prior: `python -m jigdoll.prior.pocket.train --out FOLDER`, in one file to be read in one sitting.

Each process makes its own clips, takes its own gradient, and all apply the average; so two processes of one thread
each use two cores better than one process of two. Interrupt it when you like: the same command goes on from the last
checkpoint. `--export FILE` writes the averaged weights with all that made them.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from itertools import islice
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.multiprocessing.spawn import spawn

from jigdoll.checkpoint import read_checkpoint, write_checkpoint
from jigdoll.errors import JigdollError
from jigdoll.formats.files import write_bytes
from jigdoll.prior.pocket.data import Recipe, Sample, samples
from jigdoll.prior.pocket.model import PocketConfig, PocketNet, signal_and_noise
from jigdoll.prior.pocket.text import to_ids
from jigdoll.prior.pocket.vocabulary import Vocabulary, vocabulary_in

BANDS = 5
CHECKPOINT = "checkpoint.npz"
CONTRASTED = (0.1, 0.85)
"""Noise levels at which a mistake is told from the right thing: below them a clip needs no words, above them none help.
Another action can be told at any higher level."""


@dataclass(frozen=True)
class TrainConfig:
    """How the pocket prior is trained."""

    out: Path = Path("pocket-training")
    """Folder of checkpoints, log and sample sheets."""
    steps: int = 5000
    """May be raised on resuming; the learning rate falls over the last part of whatever it is."""
    decay: float = 0.3
    """Share of the steps over which the learning rate falls to zero."""
    batch: int = 7
    """Clips per process and step."""
    processes: int = 2
    seed: int = 0
    muon: float = 0.02
    """Learning rate of the layers' matrices."""
    adam: float = 1.5e-3
    """Learning rate of everything else."""
    average: float = 0.996
    """Decay of the running average of the weights, which is what is shipped."""
    null_share: float = 0.12
    """Share of captions left empty, for classifier-free guidance."""
    faceless_share: float = 0.15
    """Share of clips without their reference_image, for prompts alone."""
    word_drop: float = 0.3
    contrasts: int = 4
    """Clips per process and step that are also denoised by words which are not true of them."""
    contrast: float = 3.0
    """Weight of telling true words from others, against 1 for denoising."""
    sureness: float = 0.02
    """Wrong words ought to raise the error by a few times this share of it."""
    fresh: int = 2
    """New clips per process and step; the others come from the pool of recent ones."""
    pool: int = 1500
    save_every: float = 240.0
    """[s]."""
    sheet_every: float = 900.0
    """[s]; 0 draws none."""
    start: Path | None = None
    """Exported weights to begin with, where there is no checkpoint yet; random ones by default."""
    export: Path | None = None
    """Write the averaged weights of the last checkpoint here and stop."""
    model: PocketConfig = field(default_factory=PocketConfig)
    recipe: Recipe = field(default_factory=Recipe)


def main(config: TrainConfig) -> None:
    """Train on as many processes as asked for, or export."""
    if config.export is not None:
        return export(config, config.export)
    config.out.mkdir(parents=True, exist_ok=True)
    # Each step frees and takes large blocks; returning them to the system costs up to half of the time.
    os.environ |= {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "100000000000", "OMP_NUM_THREADS": "1"}
    meeting = config.out.absolute() / f"meeting-{os.getpid()}"
    spawn(train, args=(config, meeting), nprocs=config.processes)
    meeting.unlink(missing_ok=True)


def train(rank: int, config: TrainConfig, meeting: Path) -> None:
    """The life of one process."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{meeting}", timedelta(minutes=15), rank=rank, world_size=config.processes)
    state = State(config)
    state.load()
    state.enter()
    place = (config.seed * 64 + rank) * 1_000_003 + state.step
    clips = Pool(config, seed=2 * place)
    generator = torch.Generator().manual_seed(2 * place + 1)
    since = dict.fromkeys(("save", "sheet", "start"), time.monotonic())
    first, errors, parent = state.step, torch.zeros(2, BANDS), os.getppid()
    while state.step < config.steps:
        if os.getppid() != parent:
            return  # nobody is there to stop this process any more
        loss, error = diffusion_loss(state.net, *clips.batch(generator), config, generator)
        loss.backward()
        errors = 0.98 * errors + error
        state.update()
        if rank == 0 and state.step % 20 == 0:
            report(state, errors, first, since["start"])
        if rank == 0 and time.monotonic() - since["save"] > config.save_every:
            state.save()
            since["save"] = time.monotonic()
        if rank == 0 and config.sheet_every and time.monotonic() - since["sheet"] > config.sheet_every:
            draw_sheet(state)
            since["sheet"] = time.monotonic()
    if rank == 0:
        state.save()
        draw_sheet(state)
    dist.barrier()
    dist.destroy_process_group()


class Pool:
    """Recent clips of this process: some new ones at every step, the rest seen a few times before."""

    def __init__(self, config: TrainConfig, *, seed: int):
        self.config, self.clips, self.place = config, [], 0
        self.source: Iterator[Sample] = samples(config.recipe, torch.Generator().manual_seed(seed))
        self.add(min(config.pool, 24 * config.batch))

    def add(self, count: int) -> None:
        for clip in islice(self.source, count):
            if len(self.clips) < self.config.pool:
                self.clips.append(clip)
            else:
                self.clips[self.place] = clip
                self.place = (self.place + 1) % self.config.pool

    def batch(self, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Videos and portraits in -1..1, the ids of their words and of words that are not true of them.

        And the highest noise level at which one might tell.
        """
        self.add(self.config.fresh)
        chosen = torch.randperm(len(self.clips), generator=generator)[: self.config.batch].tolist()
        clips = [self.clips[i] for i in chosen]
        video = torch.stack([clip.video for clip in clips]).float() / 127.5 - 1
        reference_image = torch.stack([clip.reference_image for clip in clips]).float() / 127.5 - 1
        ids, untrue = to_ids([*(clip.caption for clip in clips), *(clip.opposite for clip in clips)]).chunk(2)
        rival = torch.tensor([clip.rival for clip in clips])
        return video, reference_image, ids, untrue, torch.where(rival, 1.0, CONTRASTED[1])


def diffusion_loss(
    net: PocketNet,
    video: Float[Tensor, "batch frames height width 3"],
    reference_image: Float[Tensor, "batch height width 3"],
    ids: Int[Tensor, "batch tokens 2"],
    untrue: Int[Tensor, "batch tokens 2"],
    highest: Float[Tensor, " batch"],
    config: TrainConfig,
    generator: torch.Generator,
) -> tuple[Tensor, Float[Tensor, "2 bands"]]:
    """The squared error of x0, weighted so that all noise levels count alike; and that error by level, with counts.

    Some clips are denoised a second time, with the same noise and words that are not true of them. The logistic loss of
    the gap between the two errors, which is what guidance feeds on, is scaled so that it weighs as much as the error.
    """
    count = len(video)
    level = (torch.arange(count) + torch.rand(count, generator=generator)) / count
    level = level[torch.randperm(count, generator=generator)]
    alpha, sigma = (x[:, None, None, None, None] for x in signal_and_noise(level, shift=config.model.shift))
    noisy = alpha * video + sigma * torch.randn(video.shape, generator=generator)
    null = torch.rand(count, generator=generator) < config.null_share
    shown = torch.rand(count, generator=generator) >= config.faceless_share
    again = (~null & (level > CONTRASTED[0]) & (level < highest)).nonzero()[: config.contrasts, 0]
    rows = torch.cat([torch.arange(count), again])
    words = torch.cat([ids * (~null)[:, None, None], untrue[again]])
    text = net.text(words, drop=config.word_drop, generator=generator)
    guess = net(noisy[rows], level[rows], text, (reference_image * shown[:, None, None, None])[rows])
    square = (guess - video[rows]).square()
    focused = (square.mean((1, 4)) * focus(video)[rows]).mean((1, 2))
    weight = 1 / (0.2 + level)  # a trained network's error grows about so
    loss = (weight * focused[:count]).sum()
    scale = config.sureness * focused[again].detach()
    doubt = F.softplus((focused[again] - focused[count:]) / scale)
    loss = loss + config.contrast * (weight[again] * scale * doubt).sum()
    band = (level * BANDS).long().clamp(max=BANDS - 1)
    error = square[:count].detach().mean((1, 2, 3, 4))
    return loss / count, torch.zeros(2, BANDS).index_add(1, band, torch.stack([error, torch.ones(count)]))


def focus(video: Float[Tensor, "batch frames height width 3"]) -> Float[Tensor, "batch height width"]:
    """How much a pixel counts, one on average: the more, the nearer to the middle and the more that moves there."""
    rows, columns = video.shape[2:4]
    y = (torch.arange(rows) + 0.5)[:, None] / rows - 0.58
    x = (torch.arange(columns) + 0.5)[None] / columns - 0.5
    middle = 0.35 + torch.exp(-0.5 * ((y / 0.25) ** 2 + (x / 0.27) ** 2)) * 1.65
    moving = F.avg_pool2d((video - video.mean(1, keepdim=True)).abs().mean((1, 4)), 5, 1, 2)
    moving = moving + 0.005  # what stands still has no middle of its own
    return 0.5 * middle / middle.mean() + 0.5 * moving / moving.mean((1, 2), keepdim=True)


def _words_of(net: PocketNet) -> str:
    """What a training belongs to: the words that its network is told."""
    vocabulary = net.text.vocabulary
    return "\n".join((*vocabulary.concepts, "", *vocabulary.words))


class State:
    """Weights, their average and the optimisers' memories; the same in all processes."""

    def __init__(self, config: TrainConfig):
        self.config, self.step, self.seconds = config, 0, 0.0
        torch.manual_seed(config.seed)  # the layers' own initialisation knows no generator
        self.net = PocketNet(config.model)
        named = dict(self.net.named_parameters())
        self.matrices = [p for name, p in named.items() if name.startswith("layers.") and p.ndim == 2]
        ids = {id(p) for p in self.matrices}
        self.others = [p for p in named.values() if id(p) not in ids]
        self.momenta = [torch.zeros_like(p) for p in self.matrices]
        self.adam = torch.optim.AdamW(self.others, lr=config.adam, betas=(0.9, 0.98), weight_decay=0.0)
        self.average = {name: p.detach().clone() for name, p in named.items()}
        self.log: list[dict] = []
        self.stages: list[dict] = []
        """Where each run with settings of its own began, and with which."""

    def update(self) -> None:
        """Average the gradients over the processes, then Muon for the matrices and AdamW for the rest."""
        left = (self.config.steps - self.step) / max(1, round(self.config.decay * self.config.steps))
        rate = min(1.0, (self.step + 1) / 100, left)
        parameters = [*self.matrices, *self.others]
        flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in parameters])
        dist.all_reduce(flat)
        flat /= dist.get_world_size()
        norm = flat.norm()
        if not torch.isfinite(norm):
            raise JigdollError(f"the gradient is not finite at step {self.step}; resume from the last checkpoint")
        for p, grad in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
            p.grad = grad.view_as(p) * min(1.0, 3.0 / float(norm))
        muon_step(self.matrices, self.momenta, rate * self.config.muon)
        self.adam.param_groups[0]["lr"] = rate * self.config.adam
        self.adam.step()
        self.net.zero_grad(set_to_none=True)
        self.step += 1
        share = min(self.config.average, self.step / (self.step + 10))
        with torch.no_grad():
            for name, p in self.net.named_parameters():
                self.average[name].lerp_(p, 1 - share)

    def save(self) -> None:
        content = {
            "net": {name: p.detach() for name, p in self.net.named_parameters()},
            "average": self.average,
            "momenta": self.momenta,
            "adam": self.adam.state_dict()["state"],
            "facts": {name: getattr(self, name) for name in ("step", "seconds", "log", "stages")},
        }
        write_checkpoint(self.config.out / CHECKPOINT, content, key=_words_of(self.net))

    def load(self) -> None:
        found = read_checkpoint(self.config.out / CHECKPOINT, key=_words_of(self.net), what="training")
        if found is None:
            return self.begin()
        with torch.no_grad():
            for name, p in self.net.named_parameters():
                p.copy_(found["net"][name])
                self.average[name].copy_(found["average"][name])
            for momentum, stored in zip(self.momenta, found["momenta"], strict=True):
                momentum.copy_(stored)
        self.adam.load_state_dict(self.adam.state_dict() | {"state": found["adam"]})
        for name, value in found["facts"].items():
            setattr(self, name, value)

    def enter(self) -> None:
        """Note down the settings from here on, where they are new."""
        settings = _settings(self.config)
        if not self.stages or self.stages[-1]["settings"] != settings:
            self.stages = [*self.stages, {"step": self.step, "settings": settings}]

    def begin(self) -> None:
        """With the weights to start from, where some are named; what is of another shape than there begins anew."""
        from jigdoll.prior.pocket.prior import stored, weights_path

        if self.config.start is not None:
            facts, tensors = stored(weights_path(self.config.start))
            own, ours = self.net.state_dict(), self.net.text.vocabulary
            theirs = vocabulary_in(facts, source=self.config.start)
            tensors |= carried_over(tensors, own, theirs, ours)
            fitting = {name: p for name, p in tensors.items() if name in own and p.shape == own[name].shape}
            self.net.load_state_dict(fitting, strict=False)
            self.average = {name: p.detach().clone() for name, p in self.net.named_parameters()}


def carried_over(
    tensors: Mapping[str, Tensor], own: Mapping[str, Tensor], theirs: Vocabulary, ours: Vocabulary
) -> dict[str, Tensor]:
    """The embeddings of the other weights in our order, by name; what they never met keeps our values."""
    out = {}
    for key, old, new in (("concept", theirs.concept_ids, ours.concept_ids), ("word", theirs.word_ids, ours.word_ids)):
        rows, name = own[f"text.{key}.weight"].clone(), f"text.{key}.weight"
        if name in tensors and tensors[name].shape[1] == rows.shape[1]:
            shared = [word for word in new if word in old]
            rows[[new[word] for word in shared]] = tensors[name][[old[word] for word in shared]].to(rows)
            out[name] = rows
    return out


@torch.no_grad()
def muon_step(matrices: Sequence[Tensor], momenta: Sequence[Tensor], rate: float) -> None:
    """Momentum made orthogonal (Newton-Schulz); the processes share the matrices among them and swap the results."""
    rank, world = dist.get_rank(), dist.get_world_size()
    updates = [torch.zeros_like(p) for p in matrices]
    for i, (p, momentum) in enumerate(zip(matrices, momenta, strict=True)):
        assert p.grad is not None
        momentum.mul_(0.95).add_(p.grad)
        if i % world == rank:
            updates[i] = orthogonal(p.grad + 0.95 * momentum) * max(1.0, p.shape[0] / p.shape[1]) ** 0.5
    flat = torch.cat([u.flatten() for u in updates])
    dist.all_reduce(flat)
    for p, update in zip(matrices, flat.split([p.numel() for p in matrices]), strict=True):
        p.add_(update.view_as(p), alpha=-rate)


def orthogonal(m: Float[Tensor, "rows columns"]) -> Float[Tensor, "rows columns"]:
    """The matrix with its singular values pushed to about one by five steps of a quintic iteration."""
    x = m.T if m.shape[0] > m.shape[1] else m
    x = x / (x.norm() + 1e-7)
    for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.T if m.shape[0] > m.shape[1] else x


def report(state: State, errors: Float[Tensor, "2 bands"], first: int, start: float) -> None:
    """One line: where it is, how long it takes, and the error of x0 from low to high noise."""
    config = state.config
    pace = (time.monotonic() - start) / max(1, state.step - first)
    state.seconds += pace * 20
    bands = (errors[0] / errors[1].clamp(min=1e-9)).tolist()
    left = pace * (config.steps - state.step) / 60
    state.log.append({"step": state.step, "seconds": round(state.seconds), "error": [round(b, 5) for b in bands]})
    line = " ".join(f"{b:.4f}" for b in bands)
    print(  # noqa: T201
        f"step {state.step}/{config.steps}  {pace:.2f} s/step  {left:.0f} min left  x0 error by level: {line}",
        flush=True,
    )


def averaged(state: State) -> PocketNet:
    """The network with the running average of the weights."""
    net = PocketNet(state.config.model)
    net.load_state_dict(state.average)
    return net.eval()


def draw_sheet(state: State) -> None:
    """Samples of the averaged network, one row per prompt."""
    from jigdoll.formats.video import write_picture
    from jigdoll.prior.pocket.prior import PocketPrior
    from jigdoll.prior.sample import reference_image_of, sample, sheet
    from jigdoll.zoo.from_text import character_from_text

    prompts = ("a dog walks", "a person runs", "a cow jumps", "a T. rex walks", "a spider walks", "unnatural motion")
    prior = PocketPrior(averaged(state))
    who = [reference_image_of(character_from_text(prompt), prior) for prompt in prompts[:-1]]
    videos = torch.cat(
        [
            sample(prior, prompt, reference_image=p, seed=0, steps=24)
            for prompt, p in zip(prompts, [*who, None], strict=True)
        ]
    )
    write_picture(state.config.out / f"samples-{state.step:06d}.png", sheet(videos, every=3, scale=2))


def export(config: TrainConfig, path: Path) -> None:
    """Averaged weights in half precision with what is needed to use them, and beside them the log of all training."""
    from safetensors.torch import save

    from jigdoll.prior.pocket.prior import facts_of

    state = State(config)
    state.load()
    if state.step == 0:
        raise JigdollError(f"{config.out} holds no checkpoint; train first")
    earlier = 0 if config.start is None else facts_of(config.start)["steps"]
    facts = {
        "model": asdict(config.model),
        "recipe": asdict(config.recipe),
        "step": state.step,
        "steps": state.step + earlier,
        "vocabulary": asdict(state.net.text.vocabulary),
    }
    tensors = {name: p.half().contiguous() for name, p in state.average.items()}
    write_bytes(path, save(tensors, {"facts": json.dumps(facts)}))
    told = None if config.start is None else config.start.with_suffix(".json")
    before = json.loads(told.read_bytes()) if told is not None and told.is_file() else None
    diary = facts | {"stages": state.stages, "before": before, "log": state.log}
    write_bytes(path.with_suffix(".json"), json.dumps(diary, indent=1).encode())


def _settings(config: TrainConfig) -> dict:
    """What of the configuration bears on the weights, as it comes back from a file."""
    settings = {k: v for k, v in asdict(config).items() if k not in ("model", "out", "export")}
    return json.loads(json.dumps(settings, default=lambda path: path.name))


if __name__ == "__main__":
    import tyro

    main(tyro.cli(TrainConfig))
