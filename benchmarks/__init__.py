"""What the disk and the crash engine cost, beside something real in the same run."""
