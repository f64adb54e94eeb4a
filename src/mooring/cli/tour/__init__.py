"""The tour: a walk through a throw-away catalog, by commands that are shown and really run."""
