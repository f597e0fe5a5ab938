"""Images for guests: the small root that `sandbox.isolation.docker` imports, and Dockerfiles for GPU machines."""
