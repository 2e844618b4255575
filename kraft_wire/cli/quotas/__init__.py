"""`kraft-wire quotas`: quotas of users, clients and addresses of any cluster."""
