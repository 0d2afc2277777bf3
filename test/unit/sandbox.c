/*
 * sandbox.c - what a process can still do in the sandbox, tried by children that report by their exit status.
 */
#define _GNU_SOURCE
#include "../../src/trainer/sandbox.c"
#include "../../src/trainer/sandbox_files.c"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
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
		   refused(process_vm_writev(parent, &ours, 1, &theirs, 1, 0)) &&
		   refused(syscall(SYS_pidfd_getfd, -1, 0, 0)) &&
		   refused(syscall(SYS_pidfd_send_signal, -1, 0, NULL, 0)) &&
		   refused(syscall(SYS_tkill, parent, 0)) &&
		   refused(syscall(SYS_rt_sigqueueinfo, parent, 0, NULL));
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
		   (access(AG_SANDBOX_MPS, F_OK) == 0 || refused(syscall(SYS_connect, -1, NULL, 0))) &&
		   refused(syscall(SYS_io_uring_setup, 1, NULL)) &&
		   mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
			   MAP_FAILED;
}

static int
stays(void)
{
	return !ag_sandbox_enter(AG_SANDBOX_GPU) && refused(socket(AF_UNIX, SOCK_STREAM, 0));
}

/* --- of files --- */

static char data_folder[] = "/tmp/ag_sandbox_XXXXXX";
static int outside; /* an abstract socket of the parent's */

static int
denied(const char *path, int how)
{
	return open(path, how) == -1 && errno == EACCES;
}

static int
seen(const char *path, int how)
{
	return open(path, how) >= 0;
}

static void *
try_file(void *arg)
{
	*(int *) arg = denied("/etc/passwd", O_RDONLY);
	return arg;
}

/* Libraries, devices and what is told of this process; nothing of anybody else's, and no file in the folder of the data. */
static int
sees_what_a_driver_does(void)
{
	char theirs[64], own[PATH_MAX];
	pthread_t thread;
	int done = 0;

	snprintf(theirs, sizeof theirs, "/proc/%d/environ", (int) parent);
	snprintf(own, sizeof own, "%s/library.so", data_folder);
	return seen("/dev/null", O_RDWR) && seen("/proc/self/maps", O_RDONLY) &&
		   seen("/proc/cpuinfo", O_RDONLY) && seen("/sys", O_RDONLY) &&
		   (access("/etc/ld.so.cache", R_OK) != 0 || seen("/etc/ld.so.cache", O_RDONLY)) &&
		   seen(own, O_RDONLY) && denied(own, O_RDWR) && denied("/etc/passwd", O_RDONLY) &&
		   denied(theirs, O_RDONLY) && denied("/dev/shm", O_RDONLY) && denied("/tmp", O_RDONLY) &&
		   denied("/proc", O_RDONLY) && mkdir("/dev/shm/ag_sandbox", 0700) == -1 &&
		   errno == EACCES && pthread_create(&thread, NULL, try_file, &done) == 0 &&
		   pthread_join(thread, NULL) == 0 && done;
}

static int
sees_no_data(void)
{
	return denied("library.so", O_RDONLY) && denied(data_folder, O_RDONLY);
}

static int
executes_no_file(void)
{
	char *argv[] = {"/bin/true", NULL};

	return execv("/bin/true", argv) == -1 && errno == EACCES;
}

/* Since the sixth version of Landlock; before that seccomp alone has it. */
static int
reaches_no_socket(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	socklen_t n = sizeof address;
	int client = socket(AF_UNIX, SOCK_STREAM, 0);

	return getsockname(outside, (struct sockaddr *) &address, &n) == 0 &&
		   connect(client, (struct sockaddr *) &address, n) == -1 && errno == EPERM &&
		   kill(parent, 0) == -1 && errno == EPERM && kill(getpid(), 0) == 0;
}

/* A kernel without Landlock, as seccomp can make one: the files stay, and so do the other rules. */
static int
goes_without(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, CALL_CREATE_RULESET, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, REFUSE(ENOSYS)),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof code / sizeof *code, code};

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 && !ag_sandbox_limit_files() &&
		   errno == ENOSYS && seen("/etc/passwd", O_RDONLY) && ag_sandbox_enter(AG_SANDBOX_GPU) &&
		   refused(socket(AF_INET, SOCK_STREAM, 0)) && seen("/etc/passwd", O_RDONLY);
}

static int
limited(int (*check)(void), const char *libraries)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
	{
		setenv("LD_LIBRARY_PATH", libraries, 1);
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
			_exit(2);
		if (check != goes_without && !ag_sandbox_limit_files())
			_exit(3);
		_exit(check() ? 0 : 1);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
																		   : -1;
}

static void
test_files(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char path[PATH_MAX], list[PATH_MAX];
	int fd;

	AG_CHECK_EQ(limited(goes_without, ""), 0);
	if (syscall(CALL_CREATE_RULESET, NULL, 0, ASK_VERSION) < 1)
	{
		printf("this kernel has no Landlock: files are not limited\n");
		return;
	}
	AG_REQUIRE(mkdtemp(data_folder) != NULL);
	snprintf(path, sizeof path, "%s/library.so", data_folder);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	AG_REQUIRE(fd >= 0 && close(fd) == 0);
	snprintf(list, sizeof list, "/nowhere::%s", data_folder);
	AG_CHECK_EQ(limited(sees_what_a_driver_does, list), 0);
	AG_CHECK_EQ(limited(executes_no_file, ""), 0);
	outside = socket(AF_UNIX, SOCK_STREAM, 0);
	AG_REQUIRE(bind(outside, (struct sockaddr *) &address, sizeof(sa_family_t)) == 0);
	AG_REQUIRE(listen(outside, 1) == 0);
	if (syscall(CALL_CREATE_RULESET, NULL, 0, ASK_VERSION) >= 6)
		AG_CHECK_EQ(limited(reaches_no_socket, ""), 0);
	close(outside);
	/* the server runs in its data's folder, which no list of libraries may open, nor one above it */
	AG_REQUIRE(chdir(data_folder) == 0);
	AG_CHECK_EQ(limited(sees_no_data, list), 0);
	AG_CHECK_EQ(limited(sees_no_data, "/"), 0);
	AG_CHECK_EQ(limited(sees_no_data, "/tmp:."), 0);
	AG_REQUIRE(unlink(path) == 0 && chdir("/") == 0 && rmdir(data_folder) == 0);
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

/* Anybody may make a folder in /tmp: one of somebody else's, or a link, is not where MPS serves. */
static void
test_mps(void)
{
	struct stat there;

	if (geteuid() != 0 || lstat(AG_SANDBOX_MPS, &there) == 0)
		return;
	AG_CHECK(!ag_sandbox_has_mps());
	AG_REQUIRE(mkdir(AG_SANDBOX_MPS, 0700) == 0);
	AG_CHECK(ag_sandbox_has_mps());
	AG_REQUIRE(chown(AG_SANDBOX_MPS, 12345, 12345) == 0);
	AG_CHECK(!ag_sandbox_has_mps());
	AG_REQUIRE(rmdir(AG_SANDBOX_MPS) == 0);
	AG_REQUIRE(symlink("/usr", AG_SANDBOX_MPS) == 0);
	AG_CHECK(!ag_sandbox_has_mps());
	AG_REQUIRE(unlink(AG_SANDBOX_MPS) == 0);
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
	test_files();
	test_mps();
	return ag_unit_done("sandbox");
}
