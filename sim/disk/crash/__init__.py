"""Power cuts: journals, persistence models, unsynced pieces, survivor sets, images."""
