"""The controller's host: requests on its listeners, records appended, answers once committed."""
