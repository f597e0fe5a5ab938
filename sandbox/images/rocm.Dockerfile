# Guests for AMD MI300X (gfx942) with ROCm, torch and triton of their own, apart from the machine's.
#   docker build -f sandbox/images/rocm.Dockerfile --build-arg ROCM_VERSION=6.4.1 -t kernelwright-rocm .
#   kernelwright check FILE --problem NAME --runner gpu --isolation docker:kernelwright-rocm
# A guest gets /dev/kfd, one /dev/dri/renderD* node (that of the first GPU its checker may see) and the groups that own
# them. By hand:
#   docker run --rm --network none --device /dev/kfd --device /dev/dri/renderD128 \
#     --group-add "$(stat -c %g /dev/kfd)" --group-add "$(stat -c %g /dev/dri/renderD128)" kernelwright-rocm \
#     python3 -c 'import torch; print(torch.cuda.get_device_properties(0).gcnArchName)'
# Not built here, and never run on an AMD GPU: the machines this was written on have none and reach no image registry.
ARG ROCM_VERSION=6.4.1
FROM rocm/dev-ubuntu-24.04:${ROCM_VERSION}-complete
ARG TORCH_INDEX=https://download.pytorch.org/whl/rocm6.4
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev python3 python3-dev python3-venv util-linux \
    && rm -rf /var/lib/apt/lists/* \
    && python3 -m venv /opt/guest \
    && /opt/guest/bin/pip install --no-cache-dir numpy \
    && /opt/guest/bin/pip install --no-cache-dir torch --index-url ${TORCH_INDEX} \
    && ln -s /opt/guest/bin/python3 /usr/local/bin/python3 \
    && mkdir -p /kernelwright/guest /meeting
USER 65534:65534
