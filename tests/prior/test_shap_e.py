"""Shap-E by a tiny pipeline of the real classes whose weights are written by hand, so that the shape is known."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from jigdoll.errors import JigdollError
from jigdoll.prior.prior_diffusers.shap_e import ShapE
from jigdoll.protocols import TextTo3D

if importlib.util.find_spec("diffusers") is None:
    pytest.skip("the optional part for video models is not installed", allow_module_level=True)

# diffusers' Heun scheduler calls NumPy in a way that it will no longer take one day.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

HIDDEN = 8
RADII = torch.tensor([0.45, 0.8, 0.6])
OFFSET, SHARP = 30.0, 40.0


def tiny_pipeline(folder: Path) -> Any:
    import diffusers
    from diffusers.pipelines.shap_e.renderer import ShapERenderer
    from transformers import CLIPTextConfig, CLIPTextModelWithProjection, CLIPTokenizer

    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["<|startoftext|>", "<|endoftext|>", *letters, *(f"{letter}</w>" for letter in letters)]
    (folder / "vocab.json").write_text(json.dumps({word: place for place, word in enumerate(words)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    tokenizer = CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt"), model_max_length=12)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        text_encoder = CLIPTextModelWithProjection(
            CLIPTextConfig(
                vocab_size=len(words),
                hidden_size=16,
                intermediate_size=16,
                projection_dim=16,
                num_hidden_layers=1,
                num_attention_heads=2,
                max_position_embeddings=12,
                bos_token_id=0,
                eos_token_id=1,
                pad_token_id=1,
            )
        )
        prior = diffusers.PriorTransformer(
            num_attention_heads=2,
            attention_head_dim=8,
            num_layers=1,
            embedding_dim=12,
            num_embeddings=4 * HIDDEN,
            additional_embeddings=0,
            time_embed_act_fn="gelu",
            norm_in_type="layer",
            encoder_hid_proj_type=None,
            added_emb_type=None,
            time_embed_dim=32,
            embedding_proj_dim=16,
            clip_embed_dim=24,
        )
        renderer = ShapERenderer(
            param_shapes=((HIDDEN, 93), *3 * ((HIDDEN, HIDDEN),)), d_latent=12, d_hidden=HIDDEN, n_hidden_layers=6
        )
    scheduler = diffusers.HeunDiscreteScheduler(
        beta_schedule="exp", num_train_timesteps=1024, prediction_type="sample", use_karras_sigmas=True
    )
    return diffusers.ShapEPipeline(prior, text_encoder, tokenizer, scheduler, renderer)


def write_octahedron(renderer: Any) -> None:
    """Weights by hand: signed distance 1 - sum |x_i| / r_i, red where z > 0 and blue below.

    With silu(a) = a sigmoid(a): silu(a) - silu(-a) = a, and silu(a) + silu(-a) is |a| up to exp(-|a|). Beside an offset
    of 30 silu is the identity, so further layers hand values on.
    """
    layers = [torch.zeros(HIDDEN, 93), *(torch.zeros(HIDDEN, HIDDEN) for _ in range(3))]
    for axis in range(3):
        layers[0][2 * axis, axis], layers[0][2 * axis + 1, axis] = SHARP, -SHARP
        layers[1][0, 2 * axis : 2 * axis + 2] = 1 / (SHARP * RADII[axis])
    layers[1][1, 4], layers[1][1, 5] = 1 / SHARP, -1 / SHARP
    layers[2][0, 0] = layers[2][1, 1] = layers[3][0, 0] = layers[3][1, 1] = 1.0
    for layer, weight in enumerate(layers):
        projection = renderer.params_proj.projections[f"nerstf__mlp__{layer}__weight"]
        # The latent moves the first layer a little: other seeds give slightly other bodies.
        projection.norm.weight.fill_(0.03 if layer == 0 else 0.0)
        projection.proj.bias.copy_(weight.flatten())
    for layer in renderer.mlp.mlp:
        layer.weight.zero_()
        layer.bias.zero_()
    renderer.mlp.mlp[1].bias[:2] = OFFSET
    for layer in renderer.mlp.mlp[4:6]:
        layer.weight[0, 0] = layer.weight[1, 1] = 1.0
    last = renderer.mlp.mlp[6]
    last.weight[0, 0], last.bias[0] = -1.0, OFFSET + 1
    for channel, sign in ((3, 20.0), (5, -20.0)):
        last.weight[channel, 1], last.bias[channel] = sign, -sign * OFFSET
    last.bias[4] = -20.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shap_e")
    pipeline = tiny_pipeline(folder)
    with torch.no_grad():
        write_octahedron(pipeline.shap_e_renderer)
    pipeline.save_pretrained(folder / "tiny")
    return folder / "tiny"


def test_the_surface_is_where_the_network_says(folder: Path) -> None:
    maker = ShapE(folder, device="cpu", steps=2, grid=40, forward="-y")
    assert isinstance(maker, TextTo3D)
    asset = maker("a dog", seed=4)
    assert not asset.is_rigged and asset.name == "a dog"
    # Up is +Z and ahead -Y over there: x, y, z there are x, -z, y here; the feet are put on the ground.
    place = asset.mesh.vertices.double()
    low, high = place.amin(0), place.amax(0)
    torch.testing.assert_close(high - low, 2 * RADII[[0, 2, 1]].double(), rtol=0, atol=0.1)
    assert float(low[1]) == pytest.approx(0, abs=1e-6)
    centered = place - 0.5 * (low + high)
    distance = (centered.abs() / RADII[[0, 2, 1]]).sum(1)
    assert float((distance - 1).abs().mean()) < 0.04
    # Triangles face outwards: the volume is that of an octahedron, 4/3 abc.
    corners = centered[asset.mesh.faces]
    volume = float(torch.linalg.det(corners).sum() / 6)
    assert volume == pytest.approx(4 / 3 * float(RADII.prod()), rel=0.15)
    upper, lower = centered[:, 1] > 0.15, centered[:, 1] < -0.15
    colors = asset.mesh.colors
    assert float((colors[upper] - torch.tensor([1.0, 0.0, 0.0])).abs().max()) < 0.1
    assert float((colors[lower] - torch.tensor([0.0, 0.0, 1.0])).abs().max()) < 0.1
    again, other = maker("a dog", seed=4), maker("a dog", seed=5)
    torch.testing.assert_close(again.mesh.vertices, asset.mesh.vertices, rtol=0, atol=0)
    assert other.mesh.vertices.shape != asset.mesh.vertices.shape or not torch.equal(
        other.mesh.vertices, asset.mesh.vertices
    )
    with torch.no_grad():
        maker._pipe.shap_e_renderer.mlp.mlp[6].bias[0] = -100.0
    with pytest.raises(JigdollError, match="nothing solid of 'a dog'"):
        maker("a dog")


def test_a_folder_without_a_pipeline_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JigdollError, match="hf download openai/shap-e"):
        ShapE(tmp_path)
