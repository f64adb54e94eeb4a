"""The dialect of the deltacat library: its layout, its dictionaries, its commits."""
