"""The host loops: what the commands do with settings, an engine and a run folder."""
