"""HIP kernels run on the CPU: headers that stand in for HIP's, a runtime with a fiber per thread, and their build."""
