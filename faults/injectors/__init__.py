"""The injectors of single rules, one family a file; ``faults/injector.py`` combines them."""
