"""Problems kept elsewhere: GPU MODE problem sets and KernelBench files, read where they lie and never copied."""
