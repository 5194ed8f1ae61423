"""Record what the file systems of this machine leave after power cuts, and judge the models."""
