"""What goes wrong: crash points, the crash counter, fault plans, injectors, mutants."""
