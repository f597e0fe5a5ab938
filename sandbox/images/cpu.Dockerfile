# The CPU image by hand: empty folders where this machine's system and Python environment are bound, read-only.
# Not needed as a rule: `sandbox.isolation.docker` imports the same archive by itself.
#   python -m sandbox.images > root.tar
#   docker build -f sandbox/images/cpu.Dockerfile -t kernelwright-root .
# Built here: the archive is imported and run by tests/sandbox/test_isolation_docker.py; this file itself was not built.
FROM scratch
ADD root.tar /
