"""Record the outcomes of power cuts on file systems of this machine, and judge the models."""
