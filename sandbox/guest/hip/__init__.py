"""HIP in a guest: compiled for AMD's chips, checked against a stand-in for torch, run on the CPU. No GPU is needed."""
