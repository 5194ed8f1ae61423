"""The injectors, one family a room; ``faults/injector.py`` puts them together."""
