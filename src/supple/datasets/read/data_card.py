"""Data card of a store or of an export: contents, origin and reading instructions."""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.datasets.store.dataset_store import Store
from supple.support.text import pluralize

CARD_TEMPLATE = """---
license: {license}
task_categories: [other]
tags: [physics, simulation, elasticity, supple]
size_categories: [{size}]
---

# {title}

{description}

{count} of {vertices:,} vertices each, found by supple {version} from one scene; each was solved until its
forces balance, and has a report that says how well. {others}

| varied quantity | in the scene | from | to |
|---|---|---|---|
{varied}

| quantity | shape of a sample | |
|---|---|---|
{quantities}

Units are SI. `scene.toml` is the scene{reading}"""

STORE_READING_GUIDE = """, `design.csv` all values, `zarr.json` the spec and the environment.

```python
import supple

data = supple.data.open("{name}")
data["positions"][0], data.inputs, data.report["relative_residual"], data.split("train")
```

It is a Zarr v3 hierarchy, which `zarr` opens too: `samples/` has a chunk for each sample in shards of
{shard}, `inputs/` what varied, `report/` outcome, relative residual, position error, energy,
iterations and seconds of every sample, `rest/` points, cells, edges and masses, `splits/` ids of samples
for training, validation and test, `stats/` means and deviations of those for training, `files/` copies of
the files that the scene names. `supple dataset verify` compares all of them with their checksums.
"""


FAILED_SAMPLES_NOTE = "A sample that did not converge is marked as such, and has no positions."
OMITTED_SAMPLES_NOTE = "Samples that did not converge are left out."


def card(store: Store, name: str | None = None) -> str:
    """Data card text of a store.

    Args:
        store: The store.
        name: Final name of the store, if its folder has a temporary name while it is written.
    """
    reading = STORE_READING_GUIDE.format(name=name or store.path.name, shard=store.shard)
    return _text(store, np.arange(store.count), FAILED_SAMPLES_NOTE, reading)


def card_of_export(store: Store, ids: np.ndarray, reading: str) -> str:
    """Text of the data card of exported samples.

    Args:
        store: Store that the samples come from.
        ids: (k,) exported samples.
        reading: Files of the export and how to open them, continuing "`scene.toml` is the scene"; {quantity}
            and {label} stand for names in the data set.
    """
    names = {"quantity": store.quantities[0].name, "label": store.facts["varied"][0]["label"]}
    return _text(store, ids, OMITTED_SAMPLES_NOTE, reading.format(**names))


def _text(store: Store, ids: np.ndarray, others: str, reading: str) -> str:
    facts, spec = store.facts, store.spec
    varied = "\n".join(
        f"| {v['label']} | {', '.join(v['paths'])} | {_ends(store.inputs[v['label']][ids], 'min')} | "
        f"{_ends(store.inputs[v['label']][ids], 'max')} |"
        for v in facts["varied"]
    )
    quantities = "\n".join(f"| {k.name} | {k.shape} {store.dtype} | {k.text} |" for k in store.quantities)
    return CARD_TEMPLATE.format(
        license=spec.get("license") or "unknown",
        size=_size_category(len(ids)),
        title=store.facts["title"],
        description=spec.get("description") or "Equilibria of soft bodies.",
        count=pluralize(len(ids), "equilibrium", "equilibria"),
        vertices=facts["vertices"],
        version=facts["versions"]["supple"],
        varied=varied,
        quantities=quantities,
        others=others,
        reading=reading,
    )


def _ends(values: Any, which: str) -> str:
    ends = getattr(values, which)(axis=0)
    return f"{ends:.6g}" if ends.ndim == 0 else ", ".join(f"{v:.6g}" for v in ends)


def _size_category(count: int) -> str:
    """Size category in the terms of Hugging Face."""
    for limit, name in (
        (1_000, "n<1K"),
        (10_000, "1K<n<10K"),
        (100_000, "10K<n<100K"),
        (1_000_000, "100K<n<1M"),
    ):
        if count < limit:
            return name
    return "n>1M"
