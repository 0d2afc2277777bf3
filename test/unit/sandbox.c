/*
 * sandbox.c - what a process can still do in the sandbox, tried by children that report by their exit status.
 */
#define _GNU_SOURCE
#include "../../src/trainer/sandbox.c"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "unit/unit.h"

static pid_t parent;
static int pipes[2];

static int
refused(long result)
{
	return result == -1 && errno == EPERM;
}

/* --- each gives true when all is as it should be --- */

static void *
work(void *arg)
{
	char *memory = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*(int *) arg =
		memory != MAP_FAILED && write(pipes[1], "x", 1) == 1 && munmap(memory, 1 << 20) == 0;
	return arg;
}

static int
works(void)
{
	struct rusage usage;
	pthread_t thread;
	int done = 0;
	char byte;

	return pthread_create(&thread, NULL, work, &done) == 0 && pthread_join(thread, NULL) == 0 &&
		   done && read(pipes[0], &byte, 1) == 1 && getrusage(RUSAGE_SELF, &usage) == 0 &&
		   usleep(10) == 0;
}

static int
opens_nothing(void)
{
	return refused(syscall(SYS_openat, AT_FDCWD, "/etc/hostname", O_RDONLY)) &&
		   refused(socket(AF_UNIX, SOCK_STREAM, 0)) && refused(socket(AF_INET, SOCK_STREAM, 0)) &&
		   refused(syscall(SYS_unlinkat, AT_FDCWD, "/nowhere", 0)) &&
		   refused(syscall(SYS_mkdirat, AT_FDCWD, "/nowhere", 0700)) &&
		   refused(syscall(SYS_ioctl, 0, 0, 0));
}

static int
starts_nothing(void)
{
	char *argv[] = {"/bin/true", NULL};

	return refused(execv("/bin/true", argv)) && refused(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) &&
		   syscall(SYS_clone3, 0, 0) == -1 && errno == ENOSYS;
}

static int
touches_nobody(void)
{
	char byte;
	struct iovec ours = {&byte, 1}, theirs = {&byte, 1};

	return refused(kill(parent, 0)) && refused(kill(-1, 0)) && kill(getpid(), 0) == 0 &&
		   refused(syscall(SYS_tgkill, parent, parent, 0)) &&
		   refused(ptrace(PTRACE_ATTACH, parent, 0, 0)) &&
		   refused(process_vm_readv(parent, &ours, 1, &theirs, 1, 0)) &&
		   refused(process_vm_writev(parent, &ours, 1, &theirs, 1, 0));
}

static int
makes_no_code(void)
{
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory != MAP_FAILED && refused(mprotect(memory, 4096, PROT_READ | PROT_EXEC)) &&
		   mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
			   MAP_FAILED &&
		   mprotect(memory, 4096, PROT_READ) == 0;
}

static int
asks_of_itself_alone(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
		   refused(prlimit(parent, RLIMIT_NOFILE, NULL, &limit));
}

static int
opens_what_a_driver_does(void)
{
	return open("/dev/null", O_RDONLY) >= 0 && socket(AF_UNIX, SOCK_STREAM, 0) >= 0 &&
		   refused(socket(AF_INET, SOCK_STREAM, 0)) &&
		   refused(syscall(SYS_io_uring_setup, 1, NULL)) &&
		   mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
			   MAP_FAILED;
}

static int
stays(void)
{
	return !ag_sandbox_enter(AG_SANDBOX_GPU) && refused(socket(AF_UNIX, SOCK_STREAM, 0));
}

/* --- */

static void *
wait_then_open(void *arg)
{
	char byte;

	*(int *) arg = read(pipes[0], &byte, 1) == 1 && refused(open("/dev/null", O_RDONLY));
	return arg;
}

/* A thread that was there before. */
static int
threads_are_in_it(void)
{
	pthread_t thread;
	int done = 0;

	return pthread_create(&thread, NULL, wait_then_open, &done) == 0 &&
		   ag_sandbox_enter(AG_SANDBOX_CPU) && write(pipes[1], "x", 1) == 1 &&
		   pthread_join(thread, NULL) == 0 && done;
}

static int
child(AgSandbox sandbox, int (*check)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
	{
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
			_exit(2);
		if (check != threads_are_in_it && !ag_sandbox_enter(sandbox))
			_exit(3);
		_exit(check() ? 0 : 1);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
																		   : -1;
}

int
main(void)
{
	parent = getpid();
	AG_REQUIRE(pipe(pipes) == 0);
	if (child(AG_SANDBOX_CPU, works) == 3)
	{
		printf("this kernel has no seccomp: nothing to test\n");
		return ag_unit_done("sandbox");
	}
	AG_CHECK_EQ(child(AG_SANDBOX_CPU, works), 0);
	AG_CHECK_EQ(child(AG_SANDBOX_CPU, threads_are_in_it), 0);
	AG_CHECK_EQ(child(AG_SANDBOX_CPU, opens_nothing), 0);
	AG_CHECK_EQ(child(AG_SANDBOX_CPU, starts_nothing), 0);
	AG_CHECK_EQ(child(AG_SANDBOX_CPU, touches_nobody), 0);
	AG_CHECK_EQ(child(AG_SANDBOX_CPU, makes_no_code), 0);
	AG_CHECK_EQ(child(AG_SANDBOX_CPU, asks_of_itself_alone), 0);
	AG_CHECK_EQ(child(AG_SANDBOX_CPU, stays), 0);
	AG_CHECK_EQ(child(AG_SANDBOX_GPU, works), 0);
	AG_CHECK_EQ(child(AG_SANDBOX_GPU, opens_what_a_driver_does), 0);
	AG_CHECK_EQ(child(AG_SANDBOX_GPU, starts_nothing), 0);
	AG_CHECK_EQ(child(AG_SANDBOX_GPU, touches_nobody), 0);
	return ag_unit_done("sandbox");
}
