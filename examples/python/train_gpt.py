"""Trains a small GPT on the text of this repository's documents, twice in turns: with PyTorch's layer norms and after
clnorm.torch.replace(model). The two loss curves coincide.

    python train_gpt.py [--steps 200] [--picture loss.svg | --no-picture]

Prints the seconds of both runs and the largest difference of their losses. The picture needs no other package.
"""

import argparse
import os
import pathlib
import time

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # PyTorch's threads do not spin while OpenCL's work

import torch  # noqa: E402
from torch import nn  # noqa: E402

import clnorm.torch  # noqa: E402

CONTEXT, WIDTH, HEADS, BLOCKS, BATCH = 64, 128, 4, 3, 16


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        attended = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.bytes, self.places = nn.Embedding(256, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(BLOCKS)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 256)

    def forward(self, text):
        x = self.bytes(text) + self.places(torch.arange(text.shape[1]))
        return self.head(self.norm(self.blocks(x)))


def training_text():
    root = pathlib.Path(__file__).resolve().parents[2]
    documents = b"".join(path.read_bytes() for path in sorted(root.glob("*.md")))
    return torch.frombuffer(bytearray(documents), dtype=torch.uint8).long()


class Run:
    """A model in training: its losses, and the seconds of its steps without the first, which compiles kernels."""

    def __init__(self, replaced):
        torch.manual_seed(0)
        self.model, self.losses, self.seconds = Gpt(), [], 0.0
        if replaced:
            print("replaced:", ", ".join(clnorm.torch.replace(self.model)))
        self.optimiser = torch.optim.AdamW(self.model.parameters(), 1e-3)

    def step(self, batch):
        start = time.perf_counter()
        loss = nn.functional.cross_entropy(self.model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        self.seconds += time.perf_counter() - start if self.losses else 0.0
        self.losses.append(loss.item())


def train(steps):
    """{name: (losses, seconds)} of two runs that take turns, so that other load on the machine slows down both."""
    runs = {"PyTorch": Run(False), "clnorm.torch.replace": Run(True)}
    text = training_text()
    for _ in range(steps):
        places = torch.randint(len(text) - CONTEXT - 1, (BATCH,))
        batch = torch.stack([text[place:place + CONTEXT + 1] for place in places])
        for run in runs.values():
            run.step(batch)
    return {name: (run.losses, run.seconds) for name, run in runs.items()}


def picture(path, curves):
    """An SVG of losses by step: {name: (losses, seconds)}."""
    highest = max(max(losses) for losses, _ in curves.values())
    lines = []
    for number, (name, (losses, seconds)) in enumerate(curves.items()):
        style = ('#999" stroke-width="7', '#c33" stroke-width="2')[number]
        points = " ".join(f"{60 + 620 * i / len(losses):.1f},{20 + 320 * (1 - loss / highest):.1f}"
                          for i, loss in enumerate(losses))
        lines.append(f'<polyline fill="none" stroke="{style}" points="{points}"/>')
        lines.append(f'<text x="420" y="{50 + 22 * number}" fill="{style[:4]}">{name}: {seconds:.1f} s</text>')
    axes = (f'<text x="20" y="25">{highest:.1f}</text><text x="35" y="345">0</text>'
            f'<text x="330" y="375">step (of {len(losses)})</text><text x="60" y="15">loss</text>'
            '<path d="M60,20 V340 H680" fill="none" stroke="black"/>')
    path.write_text('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 390" font-family="sans-serif" '
                    f'font-size="15"><rect width="700" height="390" fill="white"/>{axes}{"".join(lines)}</svg>\n')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--picture", type=pathlib.Path, default=pathlib.Path("loss.svg"))
    parser.add_argument("--no-picture", action="store_true")
    options = parser.parse_args()
    curves = train(options.steps)
    for name, (losses, seconds) in curves.items():
        print(f"{name:22s} {seconds:6.2f} s, loss {losses[0]:.4f} to {losses[-1]:.4f}")
    (eager, _), (ours, _) = curves.values()
    difference = max(abs(a - b) for a, b in zip(eager, ours))
    print(f"largest difference of the losses: {difference:.2e}")
    if not options.no_picture:
        picture(options.picture, curves)
    assert difference < 0.05


if __name__ == "__main__":
    main()
