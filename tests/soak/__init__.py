"""Long runs of a real server that is killed over and over under load: `make soak`."""
