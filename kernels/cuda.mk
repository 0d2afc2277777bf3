# The CUDA module ag_pg_cuda.so, built where nvcc is found; `make NVCC=` builds without.
#
#   CUDA_HOME             the toolkit, 11.8 to 13 (default /usr/local/cuda)
#   CUDA_ARCHITECTURES    compute capabilities to carry code for, as "80 90" (default: all below that the toolkit knows)
#   CUDA_HOST_CXX         host compiler, where the default one is too new for the toolkit
#   NVCC_FLAGS            anything else

CUDA_HOME ?= /usr/local/cuda
NVCC ?= $(firstword $(wildcard $(CUDA_HOME)/bin/nvcc) $(shell command -v nvcc 2>/dev/null))

ifneq ($(NVCC),)
CUDA_LIB = ag_pg_cuda$(DLSUFFIX)
CUDA_OBJS := $(patsubst %.cu,%.o,$(sort $(wildcard kernels/*.cu)))
CUDA_LIBDIR = $(firstword $(wildcard $(CUDA_HOME)/lib64 $(CUDA_HOME)/lib) $(dir $(NVCC))../lib64)

CUDA_WANTED = 70 75 80 86 89 90 100 120
ifndef CUDA_ARCHITECTURES
CUDA_ARCHITECTURES := $(filter $(CUDA_WANTED),$(patsubst compute_%,%,$(shell $(NVCC) --list-gpu-arch)))
endif
# Machine code for each, and PTX of the last one for what comes after it.
CUDA_GENCODE = $(foreach a,$(CUDA_ARCHITECTURES),-gencode arch=compute_$(a),code=sm_$(a)) \
	-gencode arch=compute_$(lastword $(CUDA_ARCHITECTURES)),code=compute_$(lastword $(CUDA_ARCHITECTURES))
empty :=
CUDA_CARRIES = $(subst $(empty) $(empty),\ ,$(strip $(addprefix sm_,$(CUDA_ARCHITECTURES)) compute_$(lastword $(CUDA_ARCHITECTURES))))

# -fmad=false: the same results as the CPU's -ffp-contract=off. With WERROR a register spill is an error, too.
CUDA_FLAGS = -O3 -std=c++17 -fmad=false -I. -Isrc $(CUDA_GENCODE) -DAGK_ARCHITECTURES=\"$(CUDA_CARRIES)\" \
	-Xcompiler -fPIC,-fvisibility=hidden,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics,-Wall,-Wextra,-Wno-unused-parameter$(if $(WERROR),$(comma)-Werror) \
	$(if $(WERROR),-Werror all-warnings -Xptxas --warn-on-spills) $(if $(CUDA_HOST_CXX),-ccbin $(CUDA_HOST_CXX)) $(NVCC_FLAGS)
comma := ,

all: $(CUDA_LIB)

# Linked with the C compiler: nvcc's own link would ask for libstdc++.
$(CUDA_LIB): $(CUDA_OBJS)
	$(CC) -shared -Wl,-z,relro,-z,now,-z,defs -Wl,--as-needed -Wl,--exclude-libs,ALL -o $@ $^ \
		-L$(CUDA_LIBDIR) -lcudart_static -lpthread -ldl -lrt -lm
$(CUDA_OBJS): %.o: %.cu build/cuda_flags
	$(NVCC) $(CUDA_FLAGS) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<
-include $(wildcard $(CUDA_OBJS:.o=.d))

# Other architectures, other objects.
build/cuda_flags: FORCE
	@mkdir -p build
	@echo '$(NVCC) $(CUDA_GENCODE)' | cmp -s - $@ || echo '$(NVCC) $(CUDA_GENCODE)' >$@

install: install-cuda
install-cuda: $(CUDA_LIB) installdirs
	$(INSTALL_SHLIB) $(CUDA_LIB) '$(DESTDIR)$(pkglibdir)/'
.PHONY: install-cuda

endif

# --- the same kernels on the simulator in test/cuda_sim, with any C++ compiler
SIM ?= $(patsubst test/cuda_sim/%,%,$(basename $(sort $(wildcard test/cuda_sim/*.cc test/cuda_sim/*.c))))
SIM_FLAGS = -std=c++17 -g -Og -Wall -Wextra -Werror -Wno-unused-parameter -Itest/cuda_sim -Itest -I. -Isrc \
	-DAGK_ARCHITECTURES='"sm_80 compute_80"' -MMD -MP -fsanitize=address,undefined -fno-sanitize-recover=all
SIM_OBJS := $(patsubst kernels/%.cu,build/sim/kernels/%.o,$(sort $(wildcard kernels/*.cu)))
$(SIM_OBJS): build/sim/kernels/%.o: kernels/%.cu
	@mkdir -p $(@D)
	$(CXX) $(SIM_FLAGS) -x c++ -c -o $@ $<
# What runs the threads: most of what a kernel takes there, so that no sanitizer looks at it; and a library's memset would be a thread's to one.
SIMT_FLAGS = $(filter-out -fsanitize=% -fno-sanitize% -O%,$(SIM_FLAGS)) -O3 -fno-tree-loop-distribute-patterns
SIMT_OBJ = build/sim/lib/simt.o
$(SIMT_OBJ): test/cuda_sim/lib/simt.cc
	@mkdir -p $(@D)
	$(CXX) $(SIMT_FLAGS) -c -o $@ $<
build/sim/races/simt.o: test/cuda_sim/lib/simt.cc
	@mkdir -p $(@D)
	$(CXX) $(SIMT_FLAGS) -D__SANITIZE_THREAD__ -c -o $@ $<
build/sim/lib/machine.o: test/cuda_sim/lib/machine.cc
	@mkdir -p $(@D)
	$(CXX) $(SIM_FLAGS) -c -o $@ $<
build/sim/%: test/cuda_sim/%.cc $(SIM_OBJS) $(SIMT_OBJ)
	$(CXX) $(SIM_FLAGS) -o $@ $< $(SIM_OBJS) $(SIMT_OBJ)
# Tests in C have the engine too.
build/sim/%.test.o: test/cuda_sim/%.c
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) -Itest/unit -I. $(SANITIZE) -c -o $@ $<
build/sim/%: build/sim/%.test.o build/sim/lib/machine.o $(SIM_OBJS) $(SIMT_OBJ) build/unit-obj/engine.a
	$(CXX) $(filter-out -MMD -MP,$(SIM_FLAGS)) -pthread -o $@ $^ -ldl -lm
# The same kernels under the thread sanitizer, to which a CUDA thread is a thread.
RACE_FLAGS = $(filter-out -fsanitize=% -fno-sanitize%,$(SIM_FLAGS)) -fsanitize=thread
RACE_OBJS := $(patsubst kernels/%.cu,build/sim/races/%.o,$(sort $(wildcard kernels/*.cu)))
$(RACE_OBJS): build/sim/races/%.o: kernels/%.cu
	@mkdir -p $(@D)
	$(CXX) $(RACE_FLAGS) -x c++ -c -o $@ $<
build/sim/races/races: test/cuda_sim/races/races.cc $(RACE_OBJS) build/sim/races/simt.o
	$(CXX) $(RACE_FLAGS) -o $@ $< $(RACE_OBJS) build/sim/races/simt.o
check-cuda-races: build/sim/races/races
	@if $< broken 2>&1 | grep -q 'unexpected memory mapping'; then \
		echo 'races: skipped, for the thread sanitizer does not start on this system'; exit 0; fi; \
	out=$$($<); rc=$$?; echo "races: $$out"; [ $$rc = 0 ] || exit 1; \
	for broken in broken blocks; do ! $< $$broken 2>/dev/null || { echo "the race in $$broken wasn't seen"; exit 1; }; done

check-cuda-sim: $(addprefix build/sim/,$(SIM)) check-cuda-races
	@printf '%s\n' $(SIM) | xargs -P $(UNIT_JOBS) -I NAME sh -c \
		'out=$$(build/sim/NAME 2>&1); rc=$$?; printf "%s: %s\n" NAME "$$out"; [ $$rc = 0 ] || { echo "NAME failed ($$rc)"; exit 1; }'
-include $(wildcard build/sim/*.d build/sim/*/*.d)
.SECONDARY: $(SIM_OBJS) $(RACE_OBJS)
.PHONY: check-cuda-sim check-cuda-races
