#!/usr/bin/python3
"""Trains the refinement network (see network.py) on pictures, and writes it as a safetensors file.

It is stopped and resumed at any time: --resume continues from the checkpoint, with other settings of the schedule
if told so. Each worker computes the gradient of its own part of the batch on one thread; where other programs use
the processor too, that is faster than one part on all threads.
"""
import argparse
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch

import network as networks
import safetensors
from estimate import BUILD, Estimate
from samples import FUSED_SHARE, LEAST_SIGMA, MOST_SIGMA, SETS, Pool, Source
from samples import camera_noise, held_out_pictures, psnr, to_8_bit, training_pictures

HELD_OUT_SIGMAS = (2, 10, 25, 50)


def usual_error(s: torch.Tensor) -> torch.Tensor:
    """The squared error that is usual after denoising at s: about s² for little noise, 2.8 s for much.

    Divided by it, every s counts.
    """
    return 0.1 + s**2 / (1 + s / 2.8)


class Training:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        torch.manual_seed(options.seed)
        self.network = networks.Refinement(options.unshuffle, options.layers, options.channels)
        self.network.to(memory_format=torch.channels_last)
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=options.rate)
        self.steps = 0
        self.seconds = 0.0  # of training, all runs together
        self.history: list[str] = []
        self.earlier = ""  # how the weights that this run began with were trained
        self.best = -1.0
        self.rng = np.random.default_rng(options.seed)
        self.estimate = Estimate(options.patch, options.search, options.strength, options.build)
        if options.resume:
            self._load()
        self.first_step = self.steps
        # Another seed after resuming: not the same samples again.
        source_rng = np.random.default_rng([options.seed, self.steps])
        self.source = Source(training_pictures(options.data), self.estimate, source_rng)
        self.pool = Pool(self.source, options.crop + 2 * self.network.border, options.pool)
        self.held_out = self._held_out()

    # Checkpoints

    @property
    def _checkpoint(self) -> Path:
        return self.options.out.with_suffix(".checkpoint")

    def save(self) -> None:
        state = {"network": self.network.state_dict(), "optimizer": self.optimizer.state_dict()}
        state |= {key: getattr(self, key) for key in ("steps", "seconds", "history", "best")}
        state["training"] = self.training()
        partial = self._checkpoint.with_suffix(".partial")
        torch.save(state, partial)
        partial.replace(self._checkpoint)

    def _load(self) -> None:
        path = self.options.resume
        if path.suffix == ".safetensors":  # weights only
            self.network.load_state_dict(networks.load_network(path).state_dict())
            self.earlier = safetensors.load(path)[1]["training"]
            return
        state = torch.load(path)
        self.earlier = state.get("training", "")
        self.network.load_state_dict(state["network"])
        if self.options.restart_schedule:
            self.history = state["history"]
            return
        self.optimizer.load_state_dict(state["optimizer"])
        for key in ("steps", "seconds", "history", "best"):
            setattr(self, key, state[key])

    # Held-out pictures

    def _held_out(self) -> list[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
        """sigma, noisy, estimate, clean"""
        rng = np.random.default_rng(1)
        noisy = [
            (sigma, camera_noise(clean, sigma, rng), clean)
            for sigma in HELD_OUT_SIGMAS
            for clean in held_out_pictures(self.options.data)
        ]
        return [(sigma, f, self.estimate.filter(f, sigma), clean) for sigma, f, clean in noisy]

    def held_out_psnr(self) -> tuple[list[float], list[float]]:
        """By sigma: of the estimate, and refined."""
        values: dict[int, list] = {sigma: [] for sigma in HELD_OUT_SIGMAS}
        for sigma, f, g, clean in self.held_out:
            refined = to_8_bit(self.network.refine(f, g, np.full(f.shape, sigma, np.float32)))
            values[sigma].append((psnr(g, clean), psnr(refined, clean)))
        means = np.array([np.mean(values[sigma], 0) for sigma in HELD_OUT_SIGMAS])
        return list(means[:, 0]), list(means[:, 1])

    # Steps

    def progress(self) -> float:
        by_steps = self.steps / self.options.steps if self.options.steps else 0
        by_time = self.seconds / (60 * self.options.minutes) if self.options.minutes else 0
        return min(1.0, max(by_steps, by_time))

    def rate(self) -> float:
        """A short rise, then half a cosine."""
        p, most, least = self.progress(), self.options.rate, self.options.least_rate
        return min(1.0, (self.steps + 1) / 200) * (least + (most - least) * (1 + np.cos(np.pi * p)) / 2)

    def _gradient(self, patches: np.ndarray) -> tuple[float, list[torch.Tensor]]:
        f, g, s, clean = torch.from_numpy(patches).split(1, 1)
        b = self.network.border
        with torch.cpu.amp.autocast(enabled=self.options.bf16, dtype=torch.bfloat16):
            x = self.network.inputs(f, g, s).contiguous(memory_format=torch.channels_last)
            out = self.network.convolutions(x)
        shuffled = torch.nn.functional.pixel_shuffle(out.float(), self.network.unshuffle)
        inner = (slice(None), slice(None), slice(b, -b), slice(b, -b))
        error = g[inner] + 255 * shuffled - clean[inner]
        loss = (error**2 / usual_error(s[inner])).mean()
        return loss.item(), torch.autograd.grad(loss, list(self.network.parameters()))

    def step(self, workers: ThreadPoolExecutor, renewer: ThreadPoolExecutor) -> float:
        options = self.options
        batches = [self.pool.batch(options.batch // options.workers, self.rng) for _ in range(options.workers)]
        # A patch is drawn `reuse` times on average; renewing runs beside the gradients.
        renewal = renewer.submit(self.pool.renew, max(1, options.batch // options.reuse))
        results = list(workers.map(self._gradient, batches))
        for parameter, *gradients in zip(self.network.parameters(), *(r[1] for r in results)):
            parameter.grad = sum(gradients) / len(gradients)
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate()
        self.optimizer.step()
        self.steps += 1
        renewal.result()
        return float(np.mean([r[0] for r in results]))

    def run(self) -> None:
        options = self.options
        cost = f"{self.network.flops / 1000:.1f} kFLOP a pixel"
        print(f"{options.out.name}: {cost}, patches of {self.pool.side}", flush=True)
        self.pool.renew(len(self.pool.patches) // 2)
        self.report(0, 0)
        losses, last_report, first_step, before = [], time.monotonic(), self.steps, time.monotonic()
        with ThreadPoolExecutor(options.workers) as workers, ThreadPoolExecutor(1) as renewer:
            while self.progress() < 1:
                losses.append(self.step(workers, renewer))
                now = time.monotonic()
                self.seconds += now - before
                if now - last_report > 60 * options.report:
                    self.report(np.mean(losses), (self.steps - first_step) / (now - last_report))
                    losses, last_report, first_step = [], time.monotonic(), self.steps
                before = time.monotonic()
        if losses:
            self.report(np.mean(losses), 0)

    # Reports

    def report(self, loss: float, speed: float) -> None:
        """A line of progress; the checkpoint; the weights, where they are the best on held-out pictures so far."""
        before, after = self.held_out_psnr()
        by_sigma = zip(HELD_OUT_SIGMAS, before, after)
        values = ", ".join(f"{s}: {a:.2f} ({a - b:+.2f})" for s, b, a in by_sigma)
        line = (
            f"{time.strftime('%H:%M:%S')} {self.options.out.stem}: {100 * self.progress():.0f} %, "
            f"step {self.steps}, {speed:.1f} steps/s, loss {loss:.4f}, "
            f"held-out PSNR (gain on the estimate) {values}"
        )
        print(line, flush=True)
        if self.options.log:
            with self.options.log.open("a") as file:
                file.write(f"- {line}\n")
        self.history.append(line)
        if self.steps:
            self.save()
        if np.mean(after) > self.best:
            self.best = float(np.mean(after))
            self.export(after)

    def training(self) -> str:
        o = self.options
        now = (
            f"{self.steps - self.first_step} steps of {o.batch} crops of {o.crop}x{o.crop}, "
            f"Adam {o.rate:g} to {o.least_rate:g}, squared error over its usual value at s, "
            f"sigma {LEAST_SIGMA:g} to {MOST_SIGMA:g}, noise clipped and rounded to 8 bits, "
            f"{100 * FUSED_SHARE:.0f} % uneven and not rounded, seed {o.seed}"
        )
        return f"{self.earlier}; then {now}" if self.earlier else now

    def export(self, held_out: list[float]) -> None:
        measured = ", ".join(f"sigma {s}: {v:.2f}" for s, v in zip(HELD_OUT_SIGMAS, held_out))
        metadata = networks.shape_metadata(self.network) | {
            "estimate": str(self.estimate),
            "trained_on": ", ".join(SETS) + "; without the pictures of Kodak in live1",
            "training": self.training(),
            "held_out_psnr": measured,
            "script": "tools/train/refinement.py",
            "license": "LGPL-2.1-or-later",
        }
        safetensors.save(self.options.out, networks.weights(self.network), metadata)


def main() -> None:
    formatter = argparse.ArgumentDefaultsHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    add = parser.add_argument
    add("out", type=Path, help="the weights, .safetensors; the checkpoint lies beside it")
    add("--data", type=Path, required=True, help=f"folder that holds {', '.join(SETS)}")
    add("--build", type=Path, default=BUILD, help="build folder that has the target train_estimate")
    add("--unshuffle", type=int, default=2)
    add("--layers", type=int, default=5)
    add("--channels", type=int, default=32)
    add("--patch", type=int, default=5, help="patch size of the estimate")
    add("--search", type=int, default=11, help="search size of the estimate")
    add("--strength", type=float, default=1, help="strength of the estimate")
    add("--steps", type=int, default=0, help="length of the schedule; or --minutes, whichever ends first")
    add("--minutes", type=float, default=0)
    add("--batch", type=int, default=32)
    add("--crop", type=int, default=64, help="side of what the loss sees of a patch")
    add("--rate", type=float, default=1e-3)
    add("--least-rate", type=float, default=1e-5)
    add("--pool", type=int, default=2048, help="patches in memory")
    add("--reuse", type=int, default=4, help="times that a patch is drawn")
    add("--workers", type=int, default=2)
    add("--no-bf16", dest="bf16", action="store_false", help="compute in F32 only")
    add("--seed", type=int, default=1)
    add("--resume", type=Path, help="checkpoint, or weights, to go on from")
    add("--restart-schedule", action="store_true", help="take only the weights of the checkpoint")
    add("--report", type=float, default=2, help="minutes between reports and checkpoints")
    add("--log", type=Path, help="file that the reports are added to")
    options = parser.parse_args()
    if not options.steps and not options.minutes:
        parser.error("expected --steps or --minutes")
    torch.set_num_threads(1)
    Training(options).run()


if __name__ == "__main__":
    main()
