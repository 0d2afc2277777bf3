/*
 * child.c - see child.h.
 *
 * posix_spawn and not fork: the server may be gigabytes of mappings, and nothing of ours runs between fork and exec. What
 * the child has to do for itself (die with its parent, limits, out-of-memory score) it does first thing in its main().
 */
#include "postgres.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "miscadmin.h"

#include "pg/child.h"
#include "pg/supervisor.h"

#define SOCKET_BUFFER_BYTES (1024 * 1024)

/* What of the server's environment the trainer may see: how to find libraries and GPUs, nothing else. */
static const char *const kept_variables[] = {
	"PATH",
	"HOME",
	"TMPDIR",
	"LD_LIBRARY_PATH",
	"CUDA_VISIBLE_DEVICES",
	"CUDA_DEVICE_ORDER",
	"CUDA_CACHE_PATH",
	"NVIDIA_VISIBLE_DEVICES",
	"NVIDIA_DRIVER_CAPABILITIES",
};

/* The program beside the library that this function is in. */
static bool
trainer_path(char *path, size_t size)
{
	Dl_info info;
	const char *slash;

	if (dladdr((void *) ag_child_start, &info) == 0 || info.dli_fname == NULL)
		return false;
	slash = strrchr(info.dli_fname, '/');
	if (slash == NULL)
		return false;
	return snprintf(path, size, "%.*s/ag_trainer", (int) (slash - info.dli_fname), info.dli_fname) <
		   (int) size;
}

static void
set_close_on_exec_and_nonblocking(int fd)
{
	(void) fcntl(fd, F_SETFD, FD_CLOEXEC);
	(void) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* Descriptors of a pair or pipe, none of them among those that the child's standard ones will replace. */
static bool
open_channels(int sockets[2], int pipes[2])
{
	int bytes = SOCKET_BUFFER_BYTES;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
		return false;
	if (pipe2(pipes, O_CLOEXEC) != 0)
	{
		close(sockets[0]);
		close(sockets[1]);
		return false;
	}
	for (int i = 0; i < 2; i++)
	{
		(void) setsockopt(sockets[i], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
		(void) setsockopt(sockets[i], SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
	}
	set_close_on_exec_and_nonblocking(sockets[0]);
	set_close_on_exec_and_nonblocking(pipes[0]);
	return true;
}

static int
spawn(AgChild *child, AgChildTask task, const char *path, int socket, int log)
{
	int n_kept = task == AG_CHILD_FIT ? AG_CHILD_SOCKET + 1 : 3;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t all, none;
	char *argv[3];
	char *environment[lengthof(kept_variables) + 2];
	int n = 0;
	int rc;

	for (size_t i = 0; i < lengthof(kept_variables); i++)
	{
		const char *value = getenv(kept_variables[i]);

		if (value != NULL)
			environment[n++] = psprintf("%s=%s", kept_variables[i], value);
	}
	environment[n++] = "LC_ALL=C";
	environment[n] = NULL;
	argv[0] = "ag_trainer";
	argv[1] = task == AG_CHILD_PROBE ? "--probe" : NULL;
	argv[2] = NULL;

	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	/* the sources first move out of the way of 0..3 (they are above: the server keeps 0..2 open and 3 up in use) */
	posix_spawn_file_actions_adddup2(&actions, log, 2);
	posix_spawn_file_actions_adddup2(&actions, socket, task == AG_CHILD_FIT ? AG_CHILD_SOCKET : 1);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	if (task == AG_CHILD_FIT)
		posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
	posix_spawn_file_actions_addclosefrom_np(&actions, n_kept);
#else
	(void) n_kept;
#endif
	sigfillset(&all);
	sigemptyset(&none);
	posix_spawnattr_setsigdefault(&attributes, &all);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setpgroup(&attributes, 0);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
											  POSIX_SPAWN_SETPGROUP);
	rc = posix_spawn(&child->pid, path, &actions, &attributes, argv, environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

bool
ag_child_start(AgChild *child, AgChildTask task, char *reason, size_t reason_size, char *hint,
			   size_t hint_size)
{
	char path[MAXPGPATH];
	int sockets[2], pipes[2];
	int rc, moved;

	memset(child, 0, sizeof *child);
	child->socket = child->log = child->pidfd = -1;
	hint[0] = '\0';
	if (!trainer_path(path, sizeof path))
	{
		strlcpy(reason, "could not find out where the library ag_pg is installed", reason_size);
		return false;
	}
	if (!open_channels(sockets, pipes))
	{
		snprintf(reason, reason_size, "could not open a channel to the trainer: %s",
				 strerror(errno));
		return false;
	}
	/* dup2 onto itself would keep the close-on-exec flag, so the child's end must not be 3 already */
	if (sockets[1] == AG_CHILD_SOCKET)
	{
		moved = fcntl(sockets[1], F_DUPFD_CLOEXEC, AG_CHILD_SOCKET + 1);
		close(sockets[1]);
		sockets[1] = moved;
	}
	rc = sockets[1] < 0 ? EMFILE : spawn(child, task, path, sockets[1], pipes[1]);
	if (sockets[1] >= 0)
		close(sockets[1]);
	close(pipes[1]);
	if (rc != 0)
	{
		close(sockets[0]);
		close(pipes[0]);
		child->pid = 0;
		snprintf(reason, reason_size, "could not start \"%s\": %s", path, strerror(rc));
		if (rc == ENOENT || rc == EACCES)
			snprintf(
				hint, hint_size,
				"The program ag_trainer must be installed beside the library, and the server's "
				"user must be able to run it; install ag_pg again.");
		return false;
	}
	child->socket = sockets[0];
	child->log = pipes[0];
#ifdef SYS_pidfd_open
	child->pidfd = (int) syscall(SYS_pidfd_open, child->pid, 0);
#endif
	return true;
}

bool
ag_child_reap(AgChild *child)
{
	pid_t pid;

	if (child->reaped || child->pid == 0)
		return true;
	do
		pid = waitpid(child->pid, &child->status, WNOHANG);
	while (pid < 0 && errno == EINTR);
	if (pid == 0)
		return false;
	if (pid < 0)
		child->status = 0; /* somebody else took it: nothing to tell */
	child->pid = 0;
	child->reaped = true;
	if (child->pidfd >= 0)
		close(child->pidfd);
	child->pidfd = -1;
	return true;
}

void
ag_child_kill(AgChild *child)
{
	if (child->pid > 0 && !child->reaped)
	{
		/* the group may not exist yet in the instant after the start */
		if (kill(-child->pid, SIGKILL) != 0)
			(void) kill(child->pid, SIGKILL);
		for (int i = 0; i < 1000 && !ag_child_reap(child); i++)
			pg_usleep(1000);
	}
	if (child->socket >= 0)
		close(child->socket);
	if (child->log >= 0)
		close(child->log);
	child->socket = child->log = -1;
}

static void
log_line(AgChild *child)
{
	child->line[child->n_line] = '\0';
	if (child->n_line > 0)
		ereport(LOG, (errmsg_internal("ag_trainer: %s", child->line)));
	child->n_line = 0;
}

void
ag_child_read_log(AgChild *child)
{
	char bytes[512];

	while (child->log >= 0)
	{
		ssize_t n = read(child->log, bytes, sizeof bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (n <= 0)
		{
			log_line(child);
			close(child->log);
			child->log = -1;
			return;
		}
		for (ssize_t i = 0; i < n; i++)
		{
			if (bytes[i] == '\n' || child->n_line >= (int) sizeof child->line - 1)
				log_line(child);
			if (bytes[i] != '\n')
				child->line[child->n_line++] =
					(unsigned char) bytes[i] < ' ' || IS_HIGHBIT_SET(bytes[i]) ? '?' : bytes[i];
		}
	}
}

void
ag_child_describe_end(const AgChild *child, char *text, size_t size)
{
	if (WIFSIGNALED(child->status))
		snprintf(text, size, "was killed by signal %d", WTERMSIG(child->status));
	else
		snprintf(text, size, "exited with code %d", WEXITSTATUS(child->status));
}
