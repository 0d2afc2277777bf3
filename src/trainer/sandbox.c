/*
 * sandbox.c - see sandbox.h.
 *
 * The filter is a program for the kernel's classic BPF machine, put together here: the call's number against a list, and for a few calls
 * an argument too. An argument has 64 bits, of which the machine sees 32 at a time.
 */
#define _GNU_SOURCE
#include "trainer/sandbox.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef ARCHITECTURE

#define MOST_INSTRUCTIONS 512
#define REFUSE(code) (SECCOMP_RET_ERRNO | ((uint32_t) (code) &SECCOMP_RET_DATA))
#define LOW_HALF(argument)                                                                         \
	(uint32_t)                                                                                     \
		offsetof(struct seccomp_data, args[argument]) /* both architectures are little-endian */

typedef struct Filter
{
	struct sock_filter code[MOST_INSTRUCTIONS];
	unsigned n;
} Filter;

static void
put(Filter *filter, uint16_t code, uint32_t k, uint8_t jump_true, uint8_t jump_false)
{
	if (filter->n < MOST_INSTRUCTIONS)
		filter->code[filter->n] = (struct sock_filter){code, jump_true, jump_false, k};
	filter->n++;
}

/* The machine's accumulator: that part of the call. */
static void
load(Filter *filter, uint32_t at)
{
	put(filter, BPF_LD | BPF_W | BPF_ABS, at, 0, 0);
}

static void
load_number(Filter *filter)
{
	load(filter, (uint32_t) offsetof(struct seccomp_data, nr));
}

static void
answer(Filter *filter, uint32_t what)
{
	put(filter, BPF_RET | BPF_K, what, 0, 0);
}

/* The accumulator holds the call's number. */
static void
answer_call(Filter *filter, int call, uint32_t what)
{
	put(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t) call, 0, 1);
	answer(filter, what);
}

static void
answer_calls(Filter *filter, const int *calls, unsigned n, uint32_t what)
{
	for (unsigned i = 0; i < n; i++)
		answer_call(filter, calls[i], what);
}

/* The call, with an argument whose low half is that value: that answer. Else: refused. */
static void
need_value(Filter *filter, int call, int argument, uint32_t value, uint32_t what)
{
	put(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t) call, 0, 4);
	load(filter, LOW_HALF(argument));
	put(filter, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
	answer(filter, what);
	answer(filter, REFUSE(EPERM));
}

/* The call, with none of those bits in an argument's low half: that answer. Else: refused. */
static void
need_clear(Filter *filter, int call, int argument, uint32_t bits, uint32_t what)
{
	put(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t) call, 0, 4);
	load(filter, LOW_HALF(argument));
	put(filter, BPF_JMP | BPF_JSET | BPF_K, bits, 1, 0);
	answer(filter, what);
	answer(filter, REFUSE(EPERM));
}

/* The call, with all of those bits set. */
static void
need_set(Filter *filter, int call, int argument, uint32_t bits, uint32_t what)
{
	put(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t) call, 0, 5);
	load(filter, LOW_HALF(argument));
	put(filter, BPF_ALU | BPF_AND | BPF_K, bits, 0, 0);
	put(filter, BPF_JMP | BPF_JEQ | BPF_K, bits, 0, 1);
	answer(filter, what);
	answer(filter, REFUSE(EPERM));
}

#ifndef __X32_SYSCALL_BIT
#define __X32_SYSCALL_BIT 0x40000000
#endif

/* Calls of another architecture have other numbers, and so do x86-64's with 32-bit pointers: neither is ours. */
static void
need_architecture(Filter *filter)
{
	load(filter, (uint32_t) offsetof(struct seccomp_data, arch));
	put(filter, BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
	answer(filter, SECCOMP_RET_KILL_PROCESS);
	load_number(filter);
	put(filter, BPF_JMP | BPF_JGE | BPF_K, __X32_SYSCALL_BIT, 0, 1);
	answer(filter, REFUSE(EPERM));
}

/* Threads, not processes. The C library falls back to clone where clone3, whose flags lie in memory, isn't known. */
static void
need_thread(Filter *filter)
{
	need_set(filter, __NR_clone, 0, CLONE_THREAD | CLONE_VM | CLONE_SIGHAND, SECCOMP_RET_ALLOW);
#ifdef __NR_clone3
	answer_call(filter, __NR_clone3, REFUSE(ENOSYS));
#endif
}

/* Signals for this process alone, as abort() sends. */
static void
need_own_signals(Filter *filter)
{
	need_value(filter, __NR_kill, 0, (uint32_t) getpid(), SECCOMP_RET_ALLOW);
	need_value(filter, __NR_tgkill, 0, (uint32_t) getpid(), SECCOMP_RET_ALLOW);
}

static void
build_cpu(Filter *filter)
{
	static const int allowed[] = {
		/* open descriptors */
		__NR_read,
		__NR_write,
		__NR_readv,
		__NR_writev,
		__NR_recvfrom,
		__NR_recvmsg,
		__NR_sendto,
		__NR_sendmsg,
		__NR_shutdown,
		__NR_close,
		__NR_fstat,
		__NR_lseek,
		__NR_ppoll,
#ifdef __NR_poll
		__NR_poll,
#endif
		/* memory */
		__NR_munmap,
		__NR_mremap,
		__NR_madvise,
		__NR_brk,
		/* threads */
		__NR_futex,
		__NR_set_robust_list,
		__NR_sched_yield,
		__NR_sched_getaffinity,
		__NR_gettid,
		__NR_getpid,
		__NR_exit,
		__NR_exit_group,
		__NR_rt_sigprocmask,
		__NR_rt_sigaction,
		__NR_rt_sigreturn,
		__NR_sigaltstack,
		__NR_restart_syscall,
		__NR_membarrier,
#ifdef __NR_rseq
		__NR_rseq,
#endif
		/* time and bookkeeping */
		__NR_clock_gettime,
		__NR_clock_nanosleep,
		__NR_nanosleep,
		__NR_gettimeofday,
		__NR_getrusage,
		__NR_getrandom,
	};

	answer_calls(filter, allowed, sizeof allowed / sizeof *allowed, SECCOMP_RET_ALLOW);
	need_clear(filter, __NR_mmap, 2, PROT_EXEC, SECCOMP_RET_ALLOW);
	need_clear(filter, __NR_mprotect, 2, PROT_EXEC, SECCOMP_RET_ALLOW);
	need_value(filter, __NR_prlimit64, 0, 0, SECCOMP_RET_ALLOW); /* its own */
	need_thread(filter);
	need_own_signals(filter);
	answer(filter, REFUSE(EPERM));
}

static void
build_gpu(Filter *filter)
{
	static const int refused[] = {
		__NR_execve,
		__NR_execveat,
		__NR_ptrace,
		__NR_process_vm_readv,
		__NR_process_vm_writev,
		__NR_tkill,
		__NR_rt_sigqueueinfo,
		__NR_rt_tgsigqueueinfo,
		__NR_mount,
		__NR_umount2,
		__NR_pivot_root,
		__NR_chroot,
		__NR_setns,
		__NR_unshare,
		__NR_init_module,
		__NR_finit_module,
		__NR_delete_module,
		__NR_kexec_load,
		__NR_bpf,
		__NR_perf_event_open,
		__NR_keyctl,
		__NR_add_key,
		__NR_request_key,
		__NR_reboot,
		__NR_swapon,
		__NR_swapoff,
		__NR_listen,
		__NR_accept,
		__NR_accept4,
		__NR_bind,
		__NR_personality,
#ifdef __NR_io_uring_setup
		__NR_io_uring_setup, /* whose requests no filter sees */
#endif
#ifdef __NR_pidfd_getfd
		__NR_pidfd_getfd,
#endif
#ifdef __NR_pidfd_send_signal
		__NR_pidfd_send_signal,
#endif
#ifdef __NR_fork
		__NR_fork,
		__NR_vfork,
#endif
	};

	answer_calls(filter, refused, sizeof refused / sizeof *refused, REFUSE(EPERM));
	if (!ag_sandbox_has_mps())
		answer_call(filter, __NR_connect, REFUSE(EPERM));
	need_value(filter, __NR_socket, 0, 1 /* AF_UNIX */, SECCOMP_RET_ALLOW);
	need_thread(filter);
	need_own_signals(filter);
	answer(filter, SECCOMP_RET_ALLOW);
}

bool
ag_sandbox_enter(AgSandbox sandbox)
{
	Filter filter;
	struct sock_fprog program;
	long failed;

	filter.n = 0;
	need_architecture(&filter);
	if (sandbox == AG_SANDBOX_CPU)
		build_cpu(&filter);
	else
		build_gpu(&filter);
	if (filter.n > MOST_INSTRUCTIONS)
	{
		errno = E2BIG;
		return false;
	}
	program.len = (unsigned short) filter.n;
	program.filter = filter.code;
	failed = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
	if (failed > 0) /* the thread that can't follow */
		errno = EBUSY;
	return failed == 0;
}

#else

bool
ag_sandbox_enter(AgSandbox sandbox)
{
	(void) sandbox;
	errno = ENOSYS;
	return false;
}

#endif
