"""Groups whose members of the classic and the consumer protocol meet: both ways between them."""
