"""Cloth from data: homogenised yarns [GPBD section 4.2; Sperl, Narain and Wojtan 2020].

`fabric` reads the files, `splines` and `energy` are ψ of six strains, `strains` are those of a triangle with
its neighbours, `term` puts them together.
"""

from supple.terms.hylc.fabric import Fabric, FabricMembrane, load_fabric
from supple.terms.hylc.term import FabricElasticity

__all__ = ["Fabric", "FabricElasticity", "FabricMembrane", "load_fabric"]
