"""Handwritten digits: 1,797 real 8 x 8 scans from scikit-learn, read by a small convolutional network.

    deploy --board pico2 examples/digits.py

This is an ordinary model file. `deploy` calls `model()`, `example_inputs()`, `calibration_inputs()` and
`evaluation_set()`, and reads `CLASS_NAMES`; everything else is up to you. Here, the network is trained on first use,
which takes a few seconds, and its weights are kept in the user's cache folder.
"""

import hashlib
import os
import sys
from pathlib import Path

import platformdirs
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional

CLASS_NAMES = ("0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
HELD_OUT = 450  # scans for the final test, which neither training nor calibration sees
CALIBRATION = 100  # scans of the training set from which quantisation takes its ranges


class DigitNet(nn.Module):
    """A convolution, two depthwise-separable blocks and a linear layer: 82,000 multiply-accumulates per scan."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        self.block1 = separable(16, 32)
        self.block2 = separable(32, 48)
        self.pool = nn.MaxPool2d(2)
        self.classifier = nn.Linear(48 * 2 * 2, 10)

    def forward(self, x):  # x: (1, 1, 8, 8), brightness from 0 to 1
        x = self.stem(x)
        x = self.pool(self.block1(x))
        x = self.pool(self.block2(x))
        return self.classifier(torch.flatten(x, 1))


def separable(inputs, outputs):
    """A depthwise 3 x 3 convolution, then a pointwise one."""
    return nn.Sequential(
        nn.Conv2d(inputs, inputs, 3, padding=1, groups=inputs, bias=False),
        nn.BatchNorm2d(inputs),
        nn.ReLU(),
        nn.Conv2d(inputs, outputs, 1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )


def scans():
    """All scans, (1797, 1, 8, 8), and what they show, (1797,), in an order that is mixed but always the same."""
    digits = load_digits()
    order = torch.randperm(len(digits.images), generator=torch.Generator().manual_seed(0))
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    return images[order], torch.tensor(digits.target)[order]


def train(network):
    """Thirty passes over the training scans, each shifted by up to a pixel at random."""
    print("training the digits network...", file=sys.stderr)
    torch.set_num_threads(1)  # the fastest for so small a network, and the same sums however many cores there are
    images, labels = scans()
    images, labels = images[HELD_OUT:], labels[HELD_OUT:]
    optimizer = torch.optim.AdamW(network.parameters(), lr=4e-3, weight_decay=1e-2)
    epochs, batch = 30, 64
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 8e-3, total_steps=epochs * -(-len(images) // batch))
    network.train()
    for _ in range(epochs):
        for chosen in torch.randperm(len(images)).split(batch):
            dx, dy = torch.randint(3, (2,)).tolist()
            shifted = functional.pad(images[chosen], (1, 1, 1, 1))[:, :, dy : dy + 8, dx : dx + 8]
            loss = functional.cross_entropy(network(shifted), labels[chosen], label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()


def model():
    """The trained network. Trains anew when this file has changed."""
    folder = Path(os.environ.get("DEPLOY_CACHE_DIR") or platformdirs.user_cache_dir("mcu-deploy"))
    weights = folder / f"digits-{hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]}.pt"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = DigitNet()
        if not weights.exists():
            train(network)
            folder.mkdir(parents=True, exist_ok=True)
            unfinished = weights.with_suffix(f".{os.getpid()}")
            torch.save(network.state_dict(), unfinished)
            unfinished.replace(weights)  # in one step, so that nobody ever reads half a file
    network.load_state_dict(torch.load(weights))
    return network.eval()


def example_inputs():
    return (scans()[0][:1],)


def calibration_inputs():
    images, _ = scans()
    return [(image.unsqueeze(0),) for image in images[HELD_OUT : HELD_OUT + CALIBRATION]]


def evaluation_set():
    images, labels = scans()
    return [(image.unsqueeze(0),) for image in images[:HELD_OUT]], labels[:HELD_OUT]
