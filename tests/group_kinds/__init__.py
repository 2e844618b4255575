"""Groups of every kind whose coordinators are killed, and members that change their protocol."""
