/*
 * sandboxed.c - a GPU, from the trainer's sandbox: the driver is loaded with its files limited, and works when its calls are too.
 */
#include <stdio.h>
#include <string.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "kernels/ag_cuda.h"
#include "trainer/sandbox.h"

bool ag_cuda_init(uint32_t abi, AgCudaTable *table);

static int
fail(const char *what, const char *why)
{
	printf("%s: %s\n", what, why);
	return 1;
}

int
main(void)
{
	static AgCudaProbe found;
	AgCudaTable table;
	AgDevice *device;
	char why[512] = "";

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return fail("no_new_privs", strerror(errno));
	if (!ag_sandbox_limit_files())
		printf("the files are not limited: %s\n", strerror(errno));
	else if (open("/etc/passwd", O_RDONLY) >= 0)
		return fail("files", "/etc/passwd can be read");
	if (!ag_cuda_init(AG_CUDA_ABI, &table))
		return fail("module", "of another ABI");
	table.probe(&found);
	if (found.n_usable == 0)
		return fail("no GPU can be used", found.reason);
	for (int i = 0; i < found.n_devices; i++)
		if (!found.devices[i].usable)
			return fail("a GPU can't be used", found.devices[i].reason);
	if (!ag_sandbox_enter(AG_SANDBOX_GPU))
		return fail("seccomp", strerror(errno));
	if (socket(AF_INET, SOCK_STREAM, 0) >= 0)
		return fail("seccomp", "sockets of the network can be made");
	for (int i = 0; i < found.n_devices; i++)
	{
		if (table.ops->open(found.devices[i].index, INT64_C(1) << 30, &device, why, sizeof why) !=
			AG_DEVICE_OK)
			return fail("a GPU can't be opened", why);
		table.ops->close(device);
	}
	printf("%d GPUs can be used from the sandbox\n", found.n_usable);
	return 0;
}
