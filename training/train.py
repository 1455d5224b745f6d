"""Trains the model on the corpus' tokens.

    python3 -m training.train --corpus CORPUS --model MODEL

MODEL must hold tokenizer.json and gets the Hugging Face directory. The state is saved to MODEL/checkpoint.pt
every few hundred steps; the same command goes on from there. MODEL/log.jsonl has the losses.
"""
import argparse
import dataclasses
import json
import math
import pathlib
import time

import numpy as np
import torch

from training.export import UNPOLISHED, save_directory
from training.model import TINY, Model, Shape


@dataclasses.dataclass
class Recipe:
    length: int = 2048
    rows: int = 64
    epochs: float = 8
    learning_rate: float = 6e-3
    warm_up: int = 100
    weight_decay: float = 0.1
    seed: int = 1
    save_every: int = 500
    log_every: int = 50


TINY_RECIPE = Recipe(length=64, rows=4, epochs=2, warm_up=2, save_every=4, log_every=2)


def read_rows(path, length):
    """The tokens cut into rows; each has one token more than `length`, which the next row starts with."""
    stream = torch.from_numpy(np.fromfile(path, dtype=np.uint16).astype(np.int32))
    count = (len(stream) - 1) // length
    index = torch.arange(count)[:, None] * length + torch.arange(length + 1)
    return stream[index]


class Batches:
    """Every epoch visits all rows once, in an order of its own."""

    def __init__(self, rows, recipe, device):
        self.rows, self.size, self.seed, self.device = rows.to(device), recipe.rows, recipe.seed, device
        self.per_epoch = len(rows) // recipe.rows

    def at(self, step):
        epoch, batch = divmod(step, self.per_epoch)
        order = torch.randperm(len(self.rows), generator=torch.Generator().manual_seed(self.seed * 1000 + epoch))
        return self.rows[order[batch * self.size:(batch + 1) * self.size].to(self.device)].long()


def share_of_rate(step, n_steps, warm_up):
    """Of the learning rate: rises, stays, and falls to nothing over the second half."""
    return min((step + 1) / warm_up, 2 * (n_steps - step) / n_steps, 1.0)


class Optimizers:
    """Muon for the layers' matrices, AdamW for the embedding and the norms; one schedule for both."""

    def __init__(self, model, recipe, n_steps, fused):
        named = list(model.named_parameters())
        is_matrix = lambda name, weight: weight.dim() == 2 and "embed" not in name
        matrices = [w for n, w in named if is_matrix(n, w)]
        others = [w for n, w in named if not is_matrix(n, w)]
        rate = recipe.learning_rate
        self.parts = [
            torch.optim.Muon(matrices, lr=rate, weight_decay=recipe.weight_decay, momentum=0.95,
                             adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(others, lr=rate, betas=(0.9, 0.95), weight_decay=0.0, fused=fused)]
        self.recipe, self.n_steps = recipe, n_steps

    def step(self, step):
        rate = self.recipe.learning_rate * share_of_rate(step, self.n_steps, self.recipe.warm_up)
        for part in self.parts:
            for group in part.param_groups:
                group["lr"] = rate
            part.step()
            part.zero_grad(set_to_none=True)

    def state(self):
        return [part.state_dict() for part in self.parts]

    def load(self, state):
        for part, saved in zip(self.parts, state):
            part.load_state_dict(saved)


@torch.no_grad()
def mean_loss(model, rows, device, at_once=16):
    """Over all rows of a split, in float32."""
    total = sum(float(model.loss(part.to(device).long())) * len(part) for part in rows.split(at_once))
    return total / len(rows)


class Run:
    def __init__(self, args):
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.recipe = TINY_RECIPE if args.tiny else dataclasses.replace(Recipe(), **overrides(args))
        torch.manual_seed(self.recipe.seed)
        torch.set_float32_matmul_precision("high")
        self.folder = args.model
        self.held_out = read_rows(args.corpus / "held_out.bin", self.recipe.length)
        self.batches = Batches(read_rows(args.corpus / "train.bin", self.recipe.length), self.recipe, self.device)
        self.n_steps = int(self.batches.per_epoch * self.recipe.epochs)
        self.model = Model(TINY if args.tiny else Shape()).to(self.device)
        self.optimizers = Optimizers(self.model, self.recipe, self.n_steps, fused=self.device == "cuda")
        self.loss = torch.compile(self.model.loss) if self.device == "cuda" else self.model.loss
        self.checkpoint = self.folder / "checkpoint.pt"

    def log(self, **entry):
        print(json.dumps(entry), flush=True)
        with open(self.folder / "log.jsonl", "a") as file:
            file.write(json.dumps(entry) + "\n")

    def resume(self):
        """The step to go on from."""
        if not self.checkpoint.exists():
            untrained = mean_loss(self.model, self.held_out, self.device)
            self.log(step=0, parameters=sum(w.numel() for w in self.model.parameters()), steps=self.n_steps,
                     held_out=round(untrained, 4), **dataclasses.asdict(self.recipe))
            return 0
        saved = torch.load(self.checkpoint, map_location=self.device, weights_only=True)
        self.model.load_state_dict(saved["model"])
        self.optimizers.load(saved["optimizers"])
        return saved["step"]

    def save(self, step):
        part = self.checkpoint.with_suffix(".part")
        torch.save({"step": step, "model": self.model.state_dict(), "optimizers": self.optimizers.state()}, part)
        part.rename(self.checkpoint)

    def train(self):
        started, losses = time.time(), []
        first = self.resume()
        for step in range(first, self.n_steps):
            with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.device == "cuda"):
                loss = self.loss(self.batches.at(step))
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizers.step(step)
            losses.append(loss.detach())
            if (step + 1) % self.recipe.log_every == 0:
                seconds = time.time() - started
                self.log(step=step + 1, loss=round(float(torch.stack(losses).mean()), 4), seconds=round(seconds, 1))
                losses = []
            if (step + 1) % self.recipe.save_every == 0:
                self.save(step + 1)
        self.save(self.n_steps)
        held_out = mean_loss(self.model, self.held_out, self.device)
        self.log(step=self.n_steps, held_out=round(held_out, 4), perplexity=round(math.exp(held_out), 3))
        save_directory(self.model, self.folder)
        (self.folder / UNPOLISHED).unlink(missing_ok=True)  # of another training


def overrides(args):
    return {name: value for name, value in (("epochs", args.epochs), ("learning_rate", args.learning_rate))
            if value is not None}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=pathlib.Path, required=True)
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--epochs", type=float)
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--tiny", action="store_true", help="a small model and few steps, for a test on a CPU")
    Run(parser.parse_args()).train()


if __name__ == "__main__":
    main()
