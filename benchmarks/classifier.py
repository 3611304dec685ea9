"""Names the action of a drawn clip: a referee for samples and distilled clips, trained on reference gaits only.

It never sees a sample of a prior or a distilled clip in training, and no prior ever sees it. `--train` makes the
weights beside this file; without it the script prints how often it is right on fresh creatures of all species.
"""

import json as json_module
import time
from pathlib import Path

import torch
import torch.nn.functional as F
import tyro
from rich.console import Console
from rich.table import Table
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from jigdoll.prior.pocket.data import (
    Recipe,
    between,
    bind,
    draw,
    legs_of,
    long_clip,
    new_seed,
    pick,
    pick_negative,
    random_creature,
    spoil,
    take,
)
from jigdoll.zoo.gaits import actions

CLASSES = (
    *("walk", "run", "jump", "idle", "turn_left", "turn_right", "creep", "march", "limp", "stomp", "dance"),
    *("punch", "kick", "wave", "flap", "fly", "unnatural"),
)
CLASS_OF = {name: name for name in CLASSES} | {"trot": "run", "gallop": "run", "hop": "jump"}
"""Trot and gallop are how four legs run; hops are jumps in a row."""
WEIGHTS = Path(__file__).with_name("classifier.safetensors")


class Classifier(nn.Module):
    """Convolutions over each frame, then over time."""

    def __init__(self) -> None:
        super().__init__()
        self.look = nn.Sequential(
            *(nn.Conv2d(6, 24, 4, 2, 1), nn.GELU(), nn.Conv2d(24, 48, 4, 2, 1), nn.GELU()),
            *(nn.Conv2d(48, 64, 4, 2, 1), nn.GELU(), nn.AdaptiveAvgPool2d((3, 4)), nn.Flatten()),
        )
        self.time = nn.Sequential(
            *(nn.Conv1d(768, 128, 5, padding=2), nn.GELU(), nn.Conv1d(128, 128, 5, padding=2), nn.GELU()),
            nn.Conv1d(128, 128, 5, padding=2),
        )
        self.name = nn.Linear(256, len(CLASSES))

    def forward(self, video: Tensor) -> Tensor:
        """Logits of clips `[batch frames height width 3]` in 0..1."""
        change = video.diff(dim=1, prepend=video[:, :1])
        x = torch.cat([video - 0.6, 4 * change], -1).permute(0, 1, 4, 2, 3)
        features = self.look(x.flatten(0, 1)).unflatten(0, x.shape[:2]).transpose(1, 2)
        y = F.gelu(self.time(features))
        return self.name(torch.cat([y.mean(-1), y.amax(-1)], -1))


def load_classifier() -> Classifier:
    """The referee with its committed weights."""
    net = Classifier()
    net.load_state_dict({key: value.float() for key, value in load_file(WEIGHTS).items()})
    return net.eval()


@torch.no_grad()
def name_actions(net: Classifier, videos: Tensor) -> tuple[list[str], Tensor]:
    """The likeliest class of each clip, and all probabilities."""
    chances = torch.cat([net(part).softmax(-1) for part in videos.split(16)])
    return [CLASSES[i] for i in chances.argmax(-1).tolist()], chances


def make_clips(count: int, seed: int, *, per_creature: int = 12) -> tuple[Tensor, Tensor]:
    """Reference clips of random creatures of all species, all classes about equally often."""
    generator, recipe = torch.Generator().manual_seed(seed), Recipe(held_out=())
    videos, labels, seen = [], [], torch.zeros(len(CLASSES))
    while len(videos) < count:
        asset = random_creature(generator, spread=2.0)
        splats, legs = bind(asset, count=1000), legs_of(asset)
        for _ in range(per_creature // 2):
            able = actions(asset)
            rarity = torch.tensor([1 / (1 + float(seen[CLASSES.index(CLASS_OF[action])])) for action in able])
            action = able[int(torch.multinomial(rarity, 1, generator=generator))]
            tempo = pick(generator, (0.0, 0.0, -1.0, 1.0)) * between(generator, 0.5, 1.0)
            clip = long_clip(asset, action, recipe, tempo=tempo, seed=new_seed(generator))
            for _ in range(2):
                bad = between(generator) < 0.12
                kind = pick_negative(action, recipe, generator)
                pose = spoil(asset, clip, legs, kind, recipe, generator) if bad else take(clip, recipe, generator)
                video, _ = draw(splats, asset, pose, recipe, generator)
                videos.append((video * 255).round().to(torch.uint8))
                label = CLASSES.index("unnatural" if bad else CLASS_OF[action])
                labels.append(label)
                seen[label] += 1
    return torch.stack(videos[:count]), torch.tensor(labels[:count])


def worn(video: Tensor, generator: torch.Generator) -> Tensor:
    """Clips as if less well drawn: other brightness and colours, soft in space and time, grain, patches come and go."""

    def each(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(len(video), 1, 1, 1, 1, generator=generator)

    grey = video.mean(-1, keepdim=True)
    video = (grey + each(0.7, 1.4) * (video - grey)) * each(0.9, 1.1)
    flat = video.flatten(0, 1).permute(0, 3, 1, 2)
    for _ in range(2):
        flat = F.avg_pool2d(flat, 3, 1, 1, count_include_pad=False)
    soft = flat.permute(0, 2, 3, 1).unflatten(0, video.shape[:2])
    video = video + (soft - video) * (each(-0.7, 1.0)).clamp(min=0)
    video = video + (smeared(video) - video) * each(-0.7, 1.0).clamp(min=0)
    frames, height, width = video.shape[1:4]
    coarse = torch.randn(len(video), 3, frames // 2, height // 4, width // 4, generator=generator)
    patches = F.interpolate(coarse, (frames, height, width), mode="trilinear").permute(0, 2, 3, 4, 1)
    video = video + each(-0.03, 0.06).clamp(min=0) * patches
    return video + each(0.0, 0.06) * torch.randn(video.shape, generator=generator)


def smeared(video: Tensor) -> Tensor:
    """Each frame with those around it, as a slow shutter sees them: twice the mean of three."""
    for _ in range(2):
        before, after = torch.cat([video[:, :1], video[:, :-1]], 1), torch.cat([video[:, 1:], video[:, -1:]], 1)
        video = (before + video + after) / 3
    return video


def train_classifier(count: int, epochs: int, *, seed: int, rate: float, again: bool, batch: int = 24) -> None:
    """A few passes over fresh clips; the learning rate falls along a cosine."""
    torch.manual_seed(0)
    net, generator = load_classifier().train() if again else Classifier(), torch.Generator().manual_seed(seed)
    start = time.process_time()
    videos, labels = make_clips(count, seed=seed)
    print(f"{count} clips in {time.process_time() - start:.0f} CPU s", flush=True)
    optimiser = torch.optim.AdamW(net.parameters(), lr=rate, weight_decay=0.02)
    steps = epochs * (count // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, steps)
    for epoch in range(epochs):
        total = 0.0
        for chosen in torch.randperm(count, generator=generator)[: count // batch * batch].view(-1, batch):
            video = worn(videos[chosen].float() / 255, generator)
            loss = F.cross_entropy(net(video), labels[chosen], label_smoothing=0.05)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            total += float(loss.detach())
        print(
            f"epoch {epoch}: loss {total / (count // batch):.3f}, {time.process_time() - start:.0f} CPU s", flush=True
        )
    save_file({key: value.half().contiguous() for key, value in net.state_dict().items()}, WEIGHTS)


def main(
    *,
    train: bool = False,
    clips: int = 6000,
    epochs: int = 7,
    seed: int = 1,
    rate: float = 2e-3,
    again: bool = False,
    quick: bool = False,
    json: Path | None = None,
) -> None:
    """Print how often the referee is right, by action.

    Args:
        train: Make new weights first.
        clips: How many to train on.
        epochs: How often each is seen.
        seed: Of the clips to train on; 2 is the seed of those it is judged by.
        rate: Highest learning rate.
        again: Train the weights that are there further, instead of new ones.
        quick: Judge fewer clips.
        json: Also write the figures to this file.
    """
    torch.set_num_threads(1)
    if train:
        train_classifier(clips, epochs, seed=seed, rate=rate, again=again)
    if not WEIGHTS.exists():
        print(f"there is no {WEIGHTS.name} yet: --train makes it (about 35 CPU minutes)")
        return
    videos, labels = make_clips(120 if quick else 600, seed=2)
    net, seen = load_classifier(), videos.float() / 255
    truth = [CLASSES[label] for label in labels.tolist()]
    looks = {"as drawn": name_actions(net, seen)[0], "smeared over time": name_actions(net, smeared(seen))[0]}
    shares = {look: _shares(names, truth) for look, names in looks.items()}
    table = Table("action", "clips", *shares, title="Named rightly by the referee: fresh creatures")
    for action in (*CLASSES, "all"):
        clips_of = len(truth) if action == "all" else truth.count(action)
        table.add_row(action, str(clips_of), *(f"{share[action]:.0%}" for share in shares.values()))
    Console().print(table)
    if json:
        json.write_text(json_module.dumps(shares, indent=1))


def _shares(names: list[str], truth: list[str]) -> dict[str, float]:
    """How often the name is the true one, by action and in all."""
    hits = {action: [n == t for n, t in zip(names, truth, strict=True) if t == action] for action in CLASSES}
    hits["all"] = [hit for action in CLASSES for hit in hits[action]]
    return {action: sum(some) / max(1, len(some)) for action, some in hits.items()}


if __name__ == "__main__":
    tyro.cli(main)
