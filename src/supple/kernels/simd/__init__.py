"""SIMD packs of several work items: arithmetic, loads and stores."""
