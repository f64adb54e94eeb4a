"""Measurements of Mooring beside pylance and the bare machine; run by ``python -m bench``."""
