/*
 * diagnosis.h - why GPUs can't be used, from what the probe found: the checks of ag_doctor() that look at GPUs, in the order in
 * which one causes the next.
 */
#ifndef AG_DIAGNOSIS_H
#define AG_DIAGNOSIS_H

#include "postgres.h"

#include "pg/probe.h"

typedef enum AgVerdict
{
	AG_VERDICT_FAIL, /* what was asked for, or is in the machine, can't be used */
	AG_VERDICT_WARN, /* works, with less than there might be */
	AG_VERDICT_OK
} AgVerdict;

/* One check. */
typedef struct AgDiagnosis
{
	AgVerdict verdict;
	const char *check;
	const char *brief; /* what was found, without paths of the server's machine */
	const char *paths; /* the rest of it, for members of pg_monitor; NULL: nothing more */
	const char *cure;  /* NULL: nothing to do */
} AgDiagnosis;

/* Of AgDiagnosis *, in the order of cause and effect. A check whose cause has failed already is left out. */
extern List *ag_diagnosis_gpus(const AgProbe *probe);

/* The first of them that isn't well; false: all are. */
extern bool ag_diagnosis_root(const AgProbe *probe, AgDiagnosis *root);

/* Adds one. */
extern void ag_diagnosis_add(List **list, AgVerdict verdict, const char *check, const char *brief,
							 const char *paths, const char *cure);

/* "12.4" of 12040; NULL of 0. */
extern const char *ag_diagnosis_cuda(int64 version);

/* The value of a variable of the program's environment; NULL: not set. */
extern const char *ag_diagnosis_variable(const AgProbe *probe, const char *name);

#endif
