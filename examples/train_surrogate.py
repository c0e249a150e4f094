"""Make a data set of bars, train a small network on it, and show its prediction next to the truth. Needs
PyTorch."""

from pathlib import Path

import numpy as np

import supple

SCENE = """
gravity = [0, -9.8, 0]

[[solid]]
name = "bar"
mesh = { block = { cells = [%d, 2, 2], size = [1, 0.25, 0.25] } }
material = { corotated = { young = 2e4, poisson = 0.3 } }
density = 100

[[pin]]
where = { side = "x-" }
"""


def make(folder: Path, samples: int, cells: int):
    scene = folder / "bar.toml"
    scene.write_text(SCENE % cells, encoding="utf-8")
    spec = {
        "scene": str(scene),
        "count": samples,
        "vary": [
            {"name": "young", "path": "solid.bar.material.young", "range": [1e4, 1e5], "scale": "log"},
            {"name": "gravity", "path": "gravity", "range": [[-5, -10, -5], [5, -2, 5]]},
        ],
    }
    return supple.dataset(spec, folder / "bars.zarr")


def train(data, epochs: int):
    """A network from inputs to displacements, and its error on samples it has not seen, relative to
    theirs."""
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)  # the network is small
    pairs, size = data.pairs("train"), 3 * len(data["points"])
    network = torch.nn.Sequential(
        torch.nn.Linear(len(pairs[0][0]), 64), torch.nn.SiLU(), torch.nn.Linear(64, 64), torch.nn.SiLU(),
        torch.nn.Linear(64, size),
    )  # fmt: skip
    optimizer = torch.optim.Adam(network.parameters(), 3e-3)
    for _ in range(epochs):
        for x, y in torch.utils.data.DataLoader(data.stream(batch_size=32, split="train"), batch_size=None):
            loss = ((network(x) - y.flatten(1)) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    unseen = data.pairs("test")
    x, y = unseen.batch(np.arange(len(unseen)))
    with torch.no_grad():
        predicted = unseen.denormalize(network(torch.from_numpy(x)).numpy().reshape(y.shape))
    truth = unseen.denormalize(y)
    error = np.linalg.norm(predicted - truth) / np.linalg.norm(truth)
    return network, predicted, truth, float(error)


def main(
    folder: Path = Path(), samples: int = 500, cells: int = 8, epochs: int = 100, pictures: bool = True
) -> float:
    data = make(folder, samples, cells)
    _, predicted, truth, error = train(data, epochs)
    print(f"{len(data.ids)} samples; displacements of unseen ones are predicted to {error:.1%}")
    if pictures:
        scene = data.scene()
        for name, displacements in (("predicted", predicted), ("truth", truth)):
            supple.render(
                data["points"] + displacements[0], folder / f"{name}.png", model=scene.scene, title=name
            )
    return error


if __name__ == "__main__":
    main()
