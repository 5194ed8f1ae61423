"""The causes of failed runs: the barriers that their programs miss."""
