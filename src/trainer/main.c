/*
 * main.c - the program ag_trainer: trains one predictor for a PostgreSQL server, and ends.
 *
 * The server's background worker starts it with a socket as descriptor 3 and speaks frames (src/wire) on it.
 * --probe looks at the machine's GPUs instead and prints what it finds (probe.h).
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "trainer/confine.h"
#include "trainer/probe.h"
#include "trainer/session.h"

#define SOCKET 3

#ifndef AG_BUILD_ID
#error "AG_BUILD_ID says which build this is, and comes from the Makefile"
#endif

int
main(int argc, char **argv)
{
	struct stat what;

	if (argc == 2 && strcmp(argv[1], "--version") == 0)
	{
		printf("ag_trainer %s\n", AG_BUILD_ID);
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "--probe") == 0)
		return ag_confine_process(1) && ag_probe_print(AG_BUILD_ID) ? 0 : 1;
	if (argc != 1 || fstat(SOCKET, &what) != 0 || !S_ISSOCK(what.st_mode))
	{
		fprintf(stderr, "ag_trainer is started by the PostgreSQL extension ag_pg, not by hand.\n"
						"Usage: ag_trainer --version | --probe\n");
		return 2;
	}
	if (!ag_confine_process(SOCKET))
		return 1;
	return ag_session_serve(SOCKET, AG_BUILD_ID);
}
