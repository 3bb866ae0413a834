"""Reading and writing: whole files or none, strict JSON and TOML, text that is safe in CSV and terminals."""
