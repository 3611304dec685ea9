"""Artists' own characters and clips under physics: what stays finite, how near, who falls, who needs a hand.

    python benchmarks/physics_real.py --shared FOLDER [--quick] [--clips N] [--engine both] [--json FILE] [--sheets DIR]

FOLDER holds `corpus` and `assets`. One process; the file of --json is written after every clip and a clip that it
already holds is skipped, so that a table can be made in several runs. Seconds are CPU seconds of the process.
"""

import json as json_module
import random
import statistics
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import tyro
from rich.console import Console
from rich.table import Table

C = "corpus/characters/"
Q = C + "quaternius/"
L = C + "liil/"
FIRST: list[tuple[str, str]] = [
    (C + "khronos/Fox.glb", "Walk"),
    (C + "khronos/Fox.glb", "Run"),
    ("assets/rigged/mesh2motion/horse-animations.glb", "Walk"),
    ("assets/rigged/mesh2motion/horse-animations.glb", "Run"),
    (Q + "robot/RobotExpressive.glb", "Walking"),
    (Q + "dinosaurs_pack/Triceratops.glb", "Triceratops_Walk"),
    (Q + "dinosaurs_pack/Trex.glb", "TRex_Run"),
    (Q + "animals_pack/Husky.glb", "Walk"),
    (Q + "farm_animals/Llama.gltf", "Walk"),
    (C + "mesh2motion/fox-animations.glb", "Walk"),
    (C + "mesh2motion/human-animations-a.glb", "Dance Charleston"),
    (C + "khronos/CesiumMan.glb", "clip_0"),
]
"""The clips whose failure was measured first."""
MORE: dict[str, tuple[str, ...]] = {
    Q + "robot/RobotExpressive.glb": ("Running", "Jump", "Punch", "Dance", "Sitting", "Death"),
    Q + "mech_pack/Leela.glb": ("Walk", "Jump", "Kick", "Dance"),
    Q + "mech_pack/Stan.glb": ("Run", "Punch", "Death"),
    C + "gdquest/gdbot.glb": ("walk", "run", "jump"),
    C + "gdquest/beetle_bot.glb": ("walk", "headbutt"),
    C + "godot/platformer_player.glb": ("walk", "run"),
    Q + "cyberpunk_pack/Character.glb": ("Kick_Left", "Death"),
    Q + "cyberpunk_pack/Enemy_Large.glb": ("Walk", "Attack"),
    C + "kaykit/adventurers/barbarian.glb": ("1H_Melee_Attack_Chop", "Jump_Land", "PickUp", "Sit_Floor_Down"),
    C + "kaykit/mannequin/mannequin_medium_movement.glb": (
        *("Walking_A", "Running_A", "Jump_Full_Long", "Crawling", "Sit_Chair_Idle"),
    ),
    C + "kaykit/mannequin/mannequin_medium_combat.glb": ("Melee_2H_Attack_Spin",),
    C + "kenney/mini_characters/character-male-a.glb": ("walk", "sprint", "sit", "attack-melee-right"),
    Q + "platformer_game_pack/Character.glb": ("Punch", "Duck"),
    Q + "single_knight_pack/KnightCharacter.glb": ("Run", "Jump", "Roll", "Death"),
    C + "mesh2motion/human-animations-a.glb": ("backflip", "crawl", "bow"),
    C + "mesh2motion/human-animations-b.glb": ("jumping-jacks", "pushup", "meditate", "throw-ball"),
    Q + "ultimate_space_pack/Astronaut_BarbaraTheBee-transformed.glb": ("Walk", "Punch", "Jump_Land"),
    Q + "monsters/orc.glb": ("Run", "Weapon"),
    Q + "monsters/giant.glb": ("Walk", "Attack"),
    C + "khronos/Fox.glb": ("Survey",),
    C + "mesh2motion/fox-animations.glb": ("Run", "Jump", "Sit", "Bite"),
    "assets/rigged/mesh2motion/horse-animations.glb": ("Kick", "Rear", "Trot"),
    Q + "animals_pack/Husky.glb": ("Gallop", "Gallop_Jump", "Death"),
    Q + "animals_pack/Wolf.glb": ("Walk", "Attack"),
    Q + "animals_pack/Deer.glb": ("Gallop", "Eating"),
    Q + "farm_animals/Pig.gltf": ("Walk",),
    Q + "farm_animals/Horse.fbx": ("Run", "Jump"),
    Q + "cat/Cat.glb": ("Walk", "Run"),
    Q + "easy_enemies_pack/Rat.glb": ("Rat_Run", "Rat_Attack"),
    Q + "easy_enemies_pack/Frog.glb": ("Frog_Jump",),
    C + "talmolab/mouse.glb": ("walk_2",),
    C + "elceejo/animalia/wolf.glb": ("walk", "sit"),
    C + "elceejo/animalia/horse.glb": ("run", "rear"),
    L + "animalworld/Elephant.glb": ("walk", "attack"),
    L + "animalworld/Kangaroo.glb": ("walk",),
    L + "animalworld/Crocodile.glb": ("walk",),
    L + "animalworld/Orangutan.glb": ("walk", "attack"),
    Q + "dinosaurs_pack/Triceratops.glb": ("Triceratops_Attack", "Triceratops_Death"),
    Q + "dinosaurs_pack/Trex.glb": ("TRex_Walk", "TRex_Attack"),
    Q + "dinosaurs_pack/Stegosaurus.glb": ("Stegosaurus_Run", "Stegosaurus_Jump"),
    L + "livingfloatlands/Tyrannosaurus.glb": ("walk", "attack"),
    L + "livingfloatlands/Oviraptor.glb": ("walk",),
    "assets/rigged/mesh2motion/bird-animations.glb": ("Walk", "Flap"),
    L + "livingfloatlands/Gastornis.glb": ("run",),
    C + "elceejo/animalia/chicken.glb": ("walk", "eat"),
    Q + "animated_monsters/Dragon.glb": ("Dragon_Flying", "Dragon_Attack"),
    C + "elceejo/draconis/fire_dragon.glb": ("walk", "slam", "fly"),
    Q + "easy_enemies_pack/Spider.glb": ("Spider_Walk", "Spider_Attack", "Spider_Jump"),
    L + "animalworld/Spider.glb": ("walk",),
    L + "animalworld/Ant.glb": ("walk",),
    L + "animalworld/Scorpion.glb": ("walk", "attack"),
    Q + "platformer_game_pack/Bee.glb": ("Flying",),
    Q + "platformer_game_pack/Crab.glb": ("Walk", "Dance"),
    Q + "fish_pack/Dolphin.glb": ("Swim",),
    Q + "easy_enemies_pack/Snake.glb": ("Snake_Walk",),
}
TWENTY: set[str] = {
    *("Fox Run", "Husky Gallop", "horse-animations Kick", "Trex TRex_Run", "Triceratops Triceratops_Attack"),
    *("Stegosaurus Stegosaurus_Jump", "bird-animations Walk", "Gastornis run", "fire_dragon fly"),
    *("Spider Spider_Walk", "Ant walk", "beetle_bot headbutt", "gdbot walk", "RobotExpressive Punch"),
    *("RobotExpressive Sitting", "Stan Punch", "Leela Jump", "KnightCharacter Death"),
    *("mannequin_medium_movement Walking_A", "human-animations-a Dance Charleston"),
}
"""Clips of many kinds on which both engines are compared, and whose sheets are looked at."""
console = Console()


@dataclass(frozen=True)
class Options:
    """What to run."""

    shared: Path
    """The folder with `corpus` and `assets`."""
    quick: bool = False
    """The first two clips, two iterations."""
    clips: int = 1000
    """At most so many clips."""
    engine: Literal["both", "newton", "mujoco"] = "both"
    """both: as the verb does, the differentiable engine with the robust one behind it."""
    iterations: int = 30
    seconds: float = 2.0
    """Longer clips are cut."""
    shuffle: bool = False
    """In an order of chance, the same every time: for runs that will not come to the end."""
    part: tuple[int, int] = (0, 1)
    """Every n-th clip from the i-th one on, as i n: for several processes, each with its own --json."""
    twenty: bool = False
    """Only the twenty clips on which both engines are compared."""
    only: str = ""
    """Only clips whose file or name holds this."""
    json: Path | None = None
    sheets: Path | None = None
    """Where contact sheets go: the clip beside what the bodies did."""


def chosen() -> list[tuple[str, str]]:
    """Every clip as (file, name)."""
    return [*FIRST, *((path, clip) for path, clips in MORE.items() for clip in clips)]


def measure(path: str, clip: str, options: Options) -> dict[str, Any]:
    """Track one clip and tell what came of it."""
    from jigdoll.asset.load import load
    from jigdoll.judge import judge
    from jigdoll.math import GRAVITY
    from jigdoll.motion import resample
    from jigdoll.physics.engine_mujoco import MujocoEngine
    from jigdoll.physics.engine_newton import NewtonEngine
    from jigdoll.physics.metrics import physical_verdict
    from jigdoll.physics.prepare import prepare
    from jigdoll.physics.track import TrackConfig, track

    asset = load(options.shared / path, fps=24.0)
    name = next(name for name in asset.clips if name.split("|")[-1] == clip)
    ready = prepare(asset)
    motion = first_frames(resample(ready.clip(asset.clips[name]), 24.0), round(24 * options.seconds) + 1)
    begin, answered = time.process_time(), []

    def progress(fraction: float, what: str) -> None:
        if " % off; " in what and not answered:
            answered.append(time.process_time() - begin)

    config = ready.config(TrackConfig(iterations=0 if options.engine == "mujoco" else options.iterations), motion)
    robust = None if options.engine == "newton" else MujocoEngine
    done = track(ready.asset, motion, NewtonEngine, config, bodies=ready.bodies, make_robust=robust, progress=progress)
    seconds = time.process_time() - begin
    finite = bool(torch.isfinite(done.motion.pose.root).all() and torch.isfinite(done.motion.pose.rotations).all())
    verdict, drawn = judge(ready.asset, done.motion), judge(ready.asset, done.reference)
    after = physical_verdict(done.bodies, ready.asset.skeleton, done.motion)
    before = physical_verdict(done.bodies, ready.asset.skeleton, done.reference)
    weight = done.bodies.total_mass * GRAVITY
    if options.sheets is not None:
        sheet(options.sheets / f"{Path(path).stem}_{clip}.png".replace(" ", "_"), ready.asset, done)
    return {
        "finite": finite,
        "error": done.error,
        "ground": config.ground,
        "fell": done.fell,
        "penetration_before": drawn.penetration,
        "penetration": verdict.penetration,
        "skate_before": drawn.skate_ratio,
        "skate": verdict.skate_ratio,
        "slide_before": sliding(done.bodies, ready.asset, done.reference),
        "slide": sliding(done.bodies, ready.asset, done.motion),
        "hand": float(done.hand.norm(dim=1).mean()) / weight,
        "upright": float(done.help.norm(dim=1).mean()) / (weight * done.bodies.leg_length),
        "root_before": before.root_force,
        "root_after": after.root_force,
        "jerk_before": drawn.angle_jerk,
        "jerk": verdict.angle_jerk,
        "tremble_before": trembling(done.bodies, ready.asset, done.reference),
        "tremble": trembling(done.bodies, ready.asset, done.motion),
        "path": done.path,
        "errors": {path: error if error < 1e6 else None for path, error in done.errors.items()},
        "bodies": len(done.bodies),
        "frames": len(motion),
        "answer": answered[0] if answered else None,
        "seconds": seconds,
        "notes": list(done.notes),
    }


def sliding(bodies: Any, asset: Any, motion: Any) -> float:
    """How fast skin slides that is within 0.4 % of the body's length of the ground in both frames [lengths / s]."""
    from jigdoll.math.transforms import apply
    from jigdoll.physics.reference import make_reference

    T = make_reference(bodies, asset.skeleton, motion, ground=False).T_world_body
    points = apply(T, bodies.contacts.expand(len(T), -1, -1, -1)).flatten(1, 2)
    low = points[..., 1] < 0.004 * bodies.length
    speed = points[..., [0, 2]].diff(dim=0).norm(dim=-1)[low[1:] & low[:-1]] * motion.fps / bodies.length
    return float(speed.mean()) if len(speed) else 0.0


def trembling(bodies: Any, asset: Any, motion: Any) -> float:
    """How far joints shake to and fro from frame to frame [body lengths]: what alternates at half the frame rate."""
    from jigdoll.kinematics import forward

    places = forward(asset.skeleton, motion.pose)[:, list(bodies.joints), :3, 3].double()
    shakes = places.diff(n=4, dim=0).norm(dim=-1) / 16  # one for what goes to and fro by one, small for smooth curves
    return float(shakes.mean()) / bodies.length if len(shakes) else 0.0


def first_frames(motion: Any, count: int) -> Any:
    """The beginning of a clip."""
    from dataclasses import replace

    pose = {name: None if value is None else value[:count] for name, value in vars(motion.pose).items()}
    return replace(motion, pose=replace(motion.pose, **pose))


def sheet(target: Path, asset: Any, done: Any) -> None:
    """Twelve frames of the clip beside what the bodies did, with the clip as a ghost."""
    from jigdoll.formats.video import write_picture
    from jigdoll.render.draw import contact_sheet
    from jigdoll.render.sheets import overlay
    from jigdoll.types import Motion, Pose

    target.parent.mkdir(parents=True, exist_ok=True)
    picked = torch.linspace(0, len(done.motion) - 1, 12).round().long()
    pair = [
        Motion(Pose(clip.pose.root[picked], clip.pose.rotations[picked]), clip.fps)
        for clip in (done.reference, done.motion)
    ]
    write_picture(target, contact_sheet(overlay(asset, *pair, size=(240, 200)).numpy(), 3))


def summary(rows: list[dict[str, Any]]) -> None:
    """The shares that the targets are about, and the failures by name; hands and feet only of clips with a ground."""
    tried, held = len(rows), [row for row in rows if row.get("finite")]
    if not held:
        return
    errors = sorted(row["error"] for row in held)
    table = Table("", "share or value", "of the clip itself")
    table.add_row("clips", str(tried), "")
    table.add_row("finite", f"{len(held) / tried:.1%}", "")
    for bound in (0.04, 0.08):
        table.add_row(f"joint error <= {bound:.0%}", f"{sum(e <= bound for e in errors) / tried:.1%}", "")
    table.add_row("median joint error", f"{statistics.median(errors):.2%}", "")
    table.add_row("falls that the clip has not", f"{sum(row['fell'] for row in held) / tried:.1%}", "")
    standing = [row for row in held if row["ground"]]
    table.add_row("clips with a ground", str(len(standing)), "")
    for key, drawn in (
        *((name, f"{name}_before") for name in ("penetration", "skate", "slide", "jerk", "tremble")),
        ("root_after", "root_before"),
        *((name, "") for name in ("hand", "upright", "answer", "seconds")),
    ):
        cells = []
        for name in (key, drawn):
            values = [row[name] for row in standing if name and row[name] is not None]
            cells.append(f"{statistics.median(values):.4g} ({statistics.fmean(values):.4g})" if values else "")
        table.add_row(f"median (mean) {key}", *cells)
    shares = {
        "by gradients": lambda row: row["path"] == "gradients",
        "without a hand that pulls": lambda row: row["hand"] == 0,
        "a pull of at most a tenth of the weight": lambda row: row["hand"] <= 0.1,
        "without any help": lambda row: row["hand"] == 0 and row["upright"] == 0,
        "sinks no deeper than the clip and half a percent": lambda row: (
            row["penetration"] <= row["penetration_before"] + 0.005
        ),
        "first answer within 5 s": lambda row: row["answer"] is not None and row["answer"] <= 5,
    }
    for name, test in shares.items():
        table.add_row(name, f"{sum(map(test, standing)) / len(standing):.1%}", "")
    console.print(table)
    for row in rows:
        if not row.get("finite") or row["fell"] or row["error"] > 0.04:
            console.print(
                row["what"], row.get("why") or f"{row['error']:.1%} off, fell {row['fell']}", row.get("notes")
            )


def main(options: Options) -> None:
    """Run what is asked and not yet known."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    known: list[dict[str, Any]] = []
    if options.json is not None and options.json.exists():
        known = json_module.loads(options.json.read_text())
    if options.quick:
        from dataclasses import replace

        options = replace(options, clips=2, iterations=2)
    done = {row["what"] for row in known}
    pairs = [pair for pair in chosen() if options.only in " ".join(pair)]
    if options.twenty:
        pairs = [pair for pair in pairs if f"{Path(pair[0]).stem} {pair[1]}" in TWENTY]
    if options.shuffle:
        random.Random(0).shuffle(pairs)
    first, step = options.part
    for path, clip in pairs[first::step][: options.clips]:
        what = f"{Path(path).stem} {clip}"
        if what in done:
            continue
        begin = time.process_time()
        try:
            row = measure(path, clip, options)
        except Exception as error:  # a benchmark lists what fails
            row = {"finite": False, "why": f"{type(error).__name__}: {error}"[:200]}
        known.append({"what": what} | row)
        text = (
            f"{row['error']:.1%} fell {row['fell']} hand {row['hand']:.2f} {row['path']}"
            if row["finite"]
            else row["why"]
        )
        console.print(f"{what}: {text} ({time.process_time() - begin:.1f} s)", highlight=False, markup=False)
        if options.json is not None:
            options.json.write_text(json_module.dumps(known, indent=1))
    summary(known)


if __name__ == "__main__":
    main(tyro.cli(Options))
