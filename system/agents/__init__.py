"""Sessions and what is known about them between two lifetimes of the runtime."""
