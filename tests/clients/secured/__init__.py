"""Every client over every protocol and login that it supports, on our node and on Apache's."""
