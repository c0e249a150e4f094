"""Scene files: loading, validation and the JSON schema."""
