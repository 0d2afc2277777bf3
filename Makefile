# ag_pg: the extension (ag_pg.so), the program that trains (ag_trainer) and, where nvcc is found,
# the CUDA module (ag_pg_cuda.so).
#
#   make                  build; `make NVCC=` without CUDA, `make WERROR=1` as CI does
#   make install          into the server of $(PG_CONFIG), uninstall to take it out again
#   make demo             build, start a throw-away server, fit a table, show the result
#   make test             every test there is; ends with "N passed, N failed"
#   make check-unit       unit tests under ASan and UBSan (UNIT=name: one of them)
#   make check-fuzz       replays the corpora and fuzzes for a bounded number of runs (FUZZ=name, FUZZ_ARGS=options of libFuzzer)
#   make check-tree       the laws of the rooms (src/README.md)
#   make check-cuda-sim   the CUDA kernels on a simulator, without a GPU
#   make installcheck     regression and isolation tests against a running server (PGHOST ...)
#   make prove-installcheck   TAP tests, which start servers of their own (PROVE_TESTS=files: some of them)
#   make bench-train      times GBM and XGB against LightGBM and XGBoost, LR, KNN and the nets against scikit-learn and PyTorch
#                         (BENCH_PYTHON, a Python that has them; BENCH_CASES=names, BENCH_REPEATS=N, BENCH_DATASETS as below)
#   make bench-predict    what predictions in SQL cost, on a throw-away server (BENCH_PYTHON as above, BENCH_PART=one of
#                         rows, connect, lookup, memory)
#   make bench-stream     how fast ag_fit reads rows, beside SELECT sum of the same columns (BENCH_ROWS=N BENCH_COLUMNS=N)
#   make bench-gpu        tests and benches of the CUDA kernels on this machine's GPU (test/gpu/run)
#   make bench-quality    ag_fit against AutoGluon (BENCH_DATASETS, a folder of tables; BENCH_PYTHON, a Python that has it; BENCH_ARGS)
#   make format           clang-format on every source file
#   make dist             build/ag_pg-VERSION.tar.gz

EXTENSION = ag_pg
MODULE_big = ag_pg
AG_VERSION := $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" ag_pg.control)
DATA = $(sort $(wildcard sql/$(EXTENSION)--*.sql))

# --- what is linked into what: both get the engine, and the linker drops from the library what the glue doesn't reach: training
# (--gc-sections; check-tree sees to it that it is gone)
objects = $(patsubst %.c,%.o,$(sort $(wildcard $(1))))
ENGINE_OBJS := $(call objects,src/engine/*.c src/engine/*/*.c)
WIRE_OBJS := $(call objects,src/wire/*.c)
TRAINER_OBJS := $(call objects,src/trainer/*.c)
GLUE_OBJS := $(call objects,src/pg/*.c)
PURE_OBJS := $(ENGINE_OBJS) $(WIRE_OBJS) $(TRAINER_OBJS)
OBJS = $(GLUE_OBJS) $(ENGINE_OBJS) $(WIRE_OBJS)

PG_CPPFLAGS = -I$(srcdir)/src
PG_CFLAGS = -Wextra -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers \
	-ffunction-sections -fdata-sections
SHLIB_LINK = -lm -Wl,--gc-sections -Wl,--version-script=src/pg/exports.map

REGRESS = $(patsubst test/sql/%.sql,%,$(sort $(wildcard test/sql/*.sql)))
REGRESS_OPTS = --inputdir=test --load-extension=$(EXTENSION)
ISOLATION = $(patsubst test/specs/%.spec,%,$(sort $(wildcard test/specs/*.spec)))
ISOLATION_OPTS = --inputdir=test --outputdir=. --load-extension=$(EXTENSION)
EXTRA_CLEAN = ag_trainer $(PURE_OBJS) $(PURE_OBJS:.o=.d) $(GLUE_OBJS:.o=.d) kernels/*.o kernels/*.d \
	ag_pg_cuda$(DLSUFFIX) build

override with_llvm = no # else clang compiles every file a second time, to bitcode

# The targets that need no server to build against work on a machine without one (they install it).
ALONE = test demo deps format dist
ifneq ($(or $(filter-out $(ALONE),$(or $(MAKECMDGOALS),all))),)
PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
ifeq ($(PGXS),)
$(error $(PG_CONFIG) --pgxs gave nothing: `make deps` says which packages are missing)
endif
include $(PGXS)

ifdef WERROR
WERROR_FLAGS = -Werror
override CFLAGS += -Werror
endif

# --- one build, one id: the server refuses a trainer of another build
BUILD_SOURCES := $(sort $(wildcard src/*/*.[ch] src/*/*/*.[ch]))
BUILD_ID := $(AG_VERSION)+$(shell cat $(BUILD_SOURCES) /dev/null | sha256sum | cut -c1-16)
BUILD_ID_OBJS := $(patsubst %.c,%.o,$(shell grep -l AG_BUILD_ID $(filter %.c,$(BUILD_SOURCES)) /dev/null))
$(BUILD_ID_OBJS): build/build_id
$(BUILD_ID_OBJS): override CPPFLAGS += -DAG_BUILD_ID='"$(BUILD_ID)"'
build/build_id: FORCE
	@mkdir -p build
	@echo '$(BUILD_ID)' | cmp -s - $@ || echo '$(BUILD_ID)' >$@
FORCE:

# --- the engine, the wire and the trainer never see a PostgreSQL header: they have a rule of their own.
# -ffp-contract=off because the same trees must come out of any compiler and any device.
OPTFLAGS ?= -O3
ENGINE_WARNINGS = -Wall -Wextra -Wmissing-prototypes -Wvla -Wpointer-arith -Wformat=2 -Wundef \
	-Wno-unused-parameter $(WERROR_FLAGS)
ENGINE_CFLAGS = -std=gnu11 -g $(OPTFLAGS) -ffp-contract=off -fvisibility=hidden -fPIC \
	-ffunction-sections -fdata-sections -fstack-protector-strong \
	$(ENGINE_WARNINGS) $(COPT) $(PROFILE)
$(TRAINER_OBJS): TRAINER_INCLUDE = -I.
$(PURE_OBJS): %.o: %.c
	$(CC) $(ENGINE_CFLAGS) $(filter -DAG_BUILD_ID=%,$(CPPFLAGS)) -Isrc $(TRAINER_INCLUDE) -MMD -MP -c -o $@ $<

# Another server, compiler or set of flags: other objects.
$(PURE_OBJS) $(GLUE_OBJS): build/flags
BUILD_FLAGS = $(VERSION) $(CC) $(OPTFLAGS) $(COPT) $(PROFILE)
build/flags: FORCE
	@mkdir -p build
	@echo '$(BUILD_FLAGS)' | cmp -s - $@ || echo '$(BUILD_FLAGS)' >$@

# PGXS tracks no headers in most packages.
$(GLUE_OBJS): %.o: %.c
	$(CC) $(CFLAGS) $(CPPFLAGS) -MMD -MP -c -o $@ $<
-include $(wildcard $(PURE_OBJS:.o=.d) $(GLUE_OBJS:.o=.d))

$(shlib): src/pg/exports.map

all: ag_trainer
install: install-trainer
ag_trainer: $(ENGINE_OBJS) $(WIRE_OBJS) $(TRAINER_OBJS)
	$(CC) $(ENGINE_CFLAGS) -pthread -Wl,--gc-sections -Wl,-z,relro,-z,now -o $@ $^ -ldl -lm

install-trainer: ag_trainer installdirs
	$(INSTALL_PROGRAM) ag_trainer '$(DESTDIR)$(pkglibdir)/ag_trainer'
uninstall: uninstall-trainer
uninstall-trainer:
	rm -f '$(DESTDIR)$(pkglibdir)/ag_trainer' '$(DESTDIR)$(pkglibdir)/ag_pg_cuda$(DLSUFFIX)'

include kernels/cuda.mk

# --- unit tests and fuzzers: one archive of the engine and the wire per compiler and sanitizer set
TEST_SOURCES := $(patsubst %.o,%.c,$(ENGINE_OBJS) $(WIRE_OBJS))
TEST_CFLAGS = -std=gnu11 -g -O1 -ffp-contract=off -fno-omit-frame-pointer -Wall -Wextra -Werror \
	-Wno-unused-parameter -DAG_BUILD_ID='"test"' -Isrc -Itest -MMD -MP
SANITIZE ?= -fsanitize=address,undefined -fno-sanitize-recover=all

UNIT_OBJS = $(TEST_SOURCES:%.c=build/unit-obj/%.o)
UNIT ?= $(patsubst test/unit/%.c,%,$(sort $(wildcard test/unit/*.c)))
UNIT_PROGRAMS = $(addprefix build/unit/,$(UNIT))
$(UNIT_OBJS): build/unit-obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(SANITIZE) -c -o $@ $<
build/unit-obj/engine.a: $(UNIT_OBJS)
	@rm -f $@
	$(AR) cr $@ $^
build/unit/%: test/unit/%.c build/unit-obj/engine.a
	@mkdir -p $(@D)
	$(CC) $(TEST_CFLAGS) $(SANITIZE) -pthread -o $@ $< build/unit-obj/engine.a -ldl -lm
build/unit/ag_trainer: $(TRAINER_OBJS:.o=.c) $(wildcard src/trainer/*.h) build/unit-obj/engine.a
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(TEST_CFLAGS)) -I. $(SANITIZE) -pthread -o $@ $(filter %.c %.a,$^) -ldl -lm
build/unit/trainer: build/unit/ag_trainer

# --- benches: the engine as it is shipped, no sanitizers
build/bench/%: test/bench/%.c $(ENGINE_OBJS)
	@mkdir -p $(@D)
	$(CC) $(ENGINE_CFLAGS) -Isrc -Itest -pthread -o $@ $< $(ENGINE_OBJS) -ldl -lm
bench-train: $(addprefix build/bench/,train_table train_dense train_net build_histogram)
	build/bench/build_histogram
	test/bench/bench_train
.PHONY: bench-train

bench-predict:
	test/with_cluster -d bench -c 'shared_buffers = 512MB' -c 'max_connections = 150' -c "shared_preload_libraries = 'ag_pg'" \
		test/bench/predict.sh
.PHONY: bench-predict

bench-stream:
	test/with_cluster -d bench -c 'shared_buffers = 2GB' test/bench/stream $(BENCH_ROWS) $(BENCH_COLUMNS)
.PHONY: bench-stream

bench-gpu:
	test/gpu/run
.PHONY: bench-gpu

bench-quality:
	test/with_cluster test/bench/quality.py --datasets "$(BENCH_DATASETS)" --peer "$(or $(BENCH_PYTHON),python3)" $(BENCH_ARGS)
.PHONY: bench-quality

# As many at a time as there are processors: each program's output comes when it has ended.
UNIT_JOBS ?= $(shell nproc 2>/dev/null || echo 2)
check-unit: $(UNIT_PROGRAMS)
	@printf '%s\n' $(UNIT) | xargs -P $(UNIT_JOBS) -I NAME sh -c \
		'out=$$(build/unit/NAME 2>&1); rc=$$?; printf "%s: %s\n" NAME "$$out"; [ $$rc = 0 ] || { echo "NAME failed ($$rc)"; exit 1; }'

FUZZ_CC ?= $(firstword $(shell command -v clang 2>/dev/null) $(shell ls /usr/bin/clang-[0-9]* 2>/dev/null))
FUZZ ?= $(patsubst test/fuzz/%.c,%,$(sort $(wildcard test/fuzz/*.c)))
FUZZ_RUNS ?= 20000
FUZZ_SECONDS ?= 30
FUZZ_SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=all
FUZZ_OBJS = $(TEST_SOURCES:%.c=build/fuzz-obj/%.o)
FUZZ_COVERAGE = -fsanitize=fuzzer-no-link
# Distances between names tell a fuzzer nothing and were half of its time.
build/fuzz-obj/src/engine/base/nearest.o: FUZZ_COVERAGE =
# Nor do comparisons in loops over rows and values, which were a third of it: their branches are enough.
$(patsubst %,build/fuzz-obj/src/engine/%.o,base/bytes base/hash base/mem $(addprefix data/,bins bins_assign bins_cuts dates feature label label_rare pipeline \
	pipeline_fit pipeline_text pipeline_text_fit profile table table_finish text text_date vocabulary vocabulary_svd)): FUZZ_COVERAGE += -fno-sanitize-coverage=trace-cmp
$(FUZZ_OBJS): build/fuzz-obj/%.o: %.c
	@mkdir -p $(@D)
	$(FUZZ_CC) $(TEST_CFLAGS) -O2 $(FUZZ_SANITIZE) $(FUZZ_COVERAGE) -c -o $@ $<
build/fuzz-obj/engine.a: $(FUZZ_OBJS)
	@rm -f $@
	$(AR) cr $@ $^
build/fuzz/%: test/fuzz/%.c build/fuzz-obj/engine.a
	@mkdir -p $(@D)
	$(FUZZ_CC) $(TEST_CFLAGS) -O2 $(FUZZ_SANITIZE) -fsanitize=fuzzer $(FUZZ_OWN) -pthread -o $@ $< build/fuzz-obj/engine.a -ldl -lm
build/fuzz/encode: FUZZ_OWN = -fno-sanitize-coverage=trace-cmp
check-fuzz: $(addprefix build/fuzz/,$(FUZZ))
	FUZZ_ARGS='$(FUZZ_ARGS)' test/run_fuzz '$(FUZZ_RUNS)' '$(FUZZ_SECONDS)' $(FUZZ)
-include $(wildcard build/unit/*.d build/fuzz/*.d $(UNIT_OBJS:.o=.d) $(FUZZ_OBJS:.o=.d))
.SECONDARY: $(UNIT_OBJS) $(FUZZ_OBJS)

prove-installcheck:
	PG_CONFIG='$(PG_CONFIG)' test/run_tap $(PROVE_TESTS)

check-tree:
	@test/check_tree
.PHONY: install-trainer uninstall-trainer check-unit check-fuzz check-tree prove-installcheck FORCE
endif

# --- targets that need nothing installed beforehand
deps:
	@test/install_missing
test:
	+@MAKE='$(MAKE)' test/run_all
demo:
	+@MAKE='$(MAKE)' test/demo
FORMAT_FILES = $(shell git ls-files --cached --others --exclude-standard '*.c' '*.h' '*.cu' '*.cuh' '*.cc')
format:
	clang-format -i $(FORMAT_FILES)
dist:
	@mkdir -p build
	git archive --format=tar.gz --prefix=ag_pg-$(AG_VERSION)/ -o build/ag_pg-$(AG_VERSION).tar.gz HEAD
	@echo build/ag_pg-$(AG_VERSION).tar.gz
.PHONY: deps test demo format dist
