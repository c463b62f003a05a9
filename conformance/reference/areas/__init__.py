"""The areas of the service, one module each; `service.AREAS` lists them."""
