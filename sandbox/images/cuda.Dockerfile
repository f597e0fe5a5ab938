# Guests for NVIDIA GPUs with a system, torch and triton of their own, apart from the machine's.
#   docker build -f sandbox/images/cuda.Dockerfile -t kernelwright-cuda .
#   kernelwright check FILE --problem NAME --runner gpu --isolation docker:kernelwright-cuda
# The driver's user libraries must come with the container: have the NVIDIA container runtime as the engine's default.
# Without this image, `--isolation docker` shows a guest the machine's own driver, torch and triton.
# Not built here: the machines this was written on reach no image registry.
ARG CUDA_VERSION=13.0.1
FROM nvidia/cuda:${CUDA_VERSION}-devel-ubuntu24.04
ARG TORCH_INDEX=https://download.pytorch.org/whl/cu130
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev python3 python3-dev python3-venv util-linux \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv /opt/guest \
    && /opt/guest/bin/pip install --no-cache-dir numpy cuda-bindings torch --extra-index-url ${TORCH_INDEX} \
    && ln -s /opt/guest/bin/python3 /usr/local/bin/python3 \
    && mkdir -p /kernelwright/guest /meeting
# The judge drops every right at the start of a container; this is for whoever runs the image by hand.
USER 65534:65534
