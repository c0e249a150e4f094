"""Data-driven cloth: homogenized yarns [GPBD section 4.2; Sperl, Narain and Wojtan 2020].

`fabric` reads files, `splines` and `energy` evaluate ψ of six strains, `strains` computes the strains of a
triangle with its neighbors, and `elasticity` is the energy term.
"""

from supple.terms.hylc.elasticity import FabricElasticity
from supple.terms.hylc.fabric import Fabric, FabricMembrane, load_fabric

__all__ = ["Fabric", "FabricElasticity", "FabricMembrane", "load_fabric"]
