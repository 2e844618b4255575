"""Three replicas of every record, of both makes or of ours, under kills: `make replicas`."""
