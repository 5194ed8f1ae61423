"""What must be true: shadows, violations, sometimes-marks."""
