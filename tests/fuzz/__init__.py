"""Coverage-guided fuzzing of everything that reads bytes from outside: `make fuzz`."""
