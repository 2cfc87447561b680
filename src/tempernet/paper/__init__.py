"""The paper: its claims, the study that decides them, and the scales of the study."""
