/*
 * confine.c - limits that the process sets itself.
 */
#define _GNU_SOURCE
#include "trainer/confine.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define NET_BYTES (INT64_C(512) << 20)
#define STACK_BYTES (INT64_C(8) << 20)

/* Best effort: without the right to (or in a container that forbids it) the default stays. */
static void
oom_first(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, "800", 3) != 3)
	{
		/* nothing depends on it */
	}
	close(fd);
}

bool
ag_confine_process(int socket)
{
	struct rlimit none = {0, 0};
	struct ucred maker;
	socklen_t n = sizeof maker;

	/* The signal comes only for a death after this call; whoever made the socket must still be the parent. */
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &maker, &n) == 0 && maker.pid > 0 &&
		maker.pid != getppid())
		return false;
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	setrlimit(RLIMIT_CORE, &none);
	signal(SIGPIPE, SIG_IGN);
	oom_first();
	return true;
}

void
ag_confine_memory(int64_t budget_bytes, int n_threads)
{
#if !defined(__SANITIZE_ADDRESS__) /* its shadow memory is far above any budget */
	struct rlimit limit;
	int64_t net = NET_BYTES + STACK_BYTES * n_threads;

	if (getrlimit(RLIMIT_DATA, &limit) != 0 || budget_bytes > INT64_MAX - net)
		return;
	if (limit.rlim_max == RLIM_INFINITY || (rlim_t) (budget_bytes + net) < limit.rlim_max)
		limit.rlim_cur = (rlim_t) (budget_bytes + net);
	else
		limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_DATA, &limit);
#else
	(void) budget_bytes;
	(void) n_threads;
#endif
}
