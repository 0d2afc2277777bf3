/*
 * sandbox.h - which system calls the program can still make, once it has what it needs.
 *
 * It reads rows and options that may be anybody's. Whoever finds a way to run code in it by them should find nothing to do there:
 * what isn't needed is refused by the kernel (seccomp), for all threads and for good.
 */
#ifndef AG_SANDBOX_H
#define AG_SANDBOX_H

#include <stdbool.h>

typedef enum AgSandbox
{
	/*
	 * Training on CPUs takes memory, threads and the descriptors that are open already: all else fails with EPERM. So no file is
	 * opened, nothing connected, nothing executed, and memory never becomes code.
	 */
	AG_SANDBOX_CPU,
	/*
	 * CUDA's driver opens, maps and controls devices as it likes. What fails is what it has no use for: executing, tracing and signalling
	 * other processes and reading their memory, sockets of any network, mounts, modules, kernel keys, BPF, user namespaces; and
	 * connecting at all, for the server's own socket is a file: but for where NVIDIA's MPS serves, which a driver asks by one.
	 */
	AG_SANDBOX_GPU
} AgSandbox;

/*
 * From here on, for this thread, those that there are, and those that they start. False: this kernel can't (errno says why), and nothing has
 * changed. prctl(PR_SET_NO_NEW_PRIVS) must have been called.
 */
bool ag_sandbox_enter(AgSandbox sandbox);

/* Where MPS has its sockets; and are they there? A folder of root's or our own: anybody may make one in /tmp. */
#define AG_SANDBOX_MPS "/tmp/nvidia-mps"
bool ag_sandbox_has_mps(void);

/*
 * For a process that will use a GPU, and so can open files all along: from here on, for this thread and those that it starts, none are left but
 * devices, libraries and the driver's own (Landlock); the server's data, its shared memory and the files of other processes are not among
 * them, and nothing can be executed. To be called before there is a second thread. False: this kernel can't (errno says why), and nothing
 * has changed. prctl(PR_SET_NO_NEW_PRIVS) must have been called.
 */
bool ag_sandbox_limit_files(void);

#endif
