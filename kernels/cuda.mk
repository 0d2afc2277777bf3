# The CUDA module, built where nvcc is found. `make NVCC=` builds without.

CUDA_HOME ?= /usr/local/cuda
NVCC ?= $(firstword $(wildcard $(CUDA_HOME)/bin/nvcc) $(shell command -v nvcc 2>/dev/null))

ifneq ($(NVCC),)
CUDA_LIB = ag_pg_cuda$(DLSUFFIX)
endif
