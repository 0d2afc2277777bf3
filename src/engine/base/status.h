/*
 * status.h - how every engine function reports failure.
 *
 * Engine functions return an AgStatus. The text is written once, where the
 * fault is known, into the AgError of the caller's context; everybody above
 * only passes the status on (AG_TRY). Nothing exits, aborts or longjmps.
 */
#ifndef AG_STATUS_H
#define AG_STATUS_H

#include <stdarg.h>
#include <stddef.h>

/*
 * The numbers travel between processes of possibly different builds: append
 * only, never renumber. The SQLSTATE the glue maps each one to is beside it.
 */
typedef enum AgStatus
{
	AG_OK = 0,
	AG_ERR_MEMORY = 1,      /* 53200: over the byte budget, or malloc failed */
	AG_ERR_CANCELLED = 2,   /* 57014: the cancel flag was raised */
	AG_ERR_TIME = 3,        /* 57014: time limit passed before there was a model */
	AG_ERR_OPTION = 4,      /* 22023: an option's name, type or value */
	AG_ERR_UNSUPPORTED = 5, /* 0A000: known to the contract, not offered yet */
	AG_ERR_DATA = 6,        /* 22000: rows or label that nothing can be learnt from */
	AG_ERR_VALUE = 7,       /* 22P02: one value can't be read as its column's type */
	AG_ERR_CORRUPT = 8,     /* XX001: bytes of a model fail a check */
	AG_ERR_PROTOCOL = 9,    /* 08P01: bytes of a frame fail a check */
	AG_ERR_SYSTEM = 10,     /* 58000: the operating system refused (threads, dlopen) */
	AG_ERR_INTERNAL = 11,   /* XX000: a bug of ours */
	AG_ERR_RESOURCES = 12   /* 53000: no CPU, slot or share became free in time */
} AgStatus;

/* UTF-8 texts, cut at a character's end where they don't fit. */
typedef struct AgError
{
	AgStatus status;
	char message[1024]; /* no final period, as PostgreSQL's primary messages */
	char detail[1024];  /* full sentences, or empty */
	char hint[1024];    /* full sentences, or empty */
} AgError;

/* Clears err. */
void ag_error_init(AgError *err);

/*
 * Sets status and message, clears detail and hint. The first fault wins: a
 * second call without ag_error_init in between changes nothing. Returns the
 * status that err holds. err may be NULL: then only the status is returned.
 */
AgStatus ag_error_set(AgError *err, AgStatus status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Adds a detail or a hint to the fault just set; does nothing on NULL or AG_OK. */
void ag_error_detail(AgError *err, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ag_error_hint(AgError *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * How many of the first `limit` bytes of a text of n_bytes to keep so that no UTF-8 character is
 * cut in two (bytes that are no UTF-8 are cut at the limit).
 */
size_t ag_utf8_clip(const char *text, size_t n_bytes, size_t limit);

/* Passes a failure up. */
#define AG_TRY(expression)                                                                         \
	do                                                                                             \
	{                                                                                              \
		AgStatus ag_try_status_ = (expression);                                                    \
		if (ag_try_status_ != AG_OK)                                                               \
			return ag_try_status_;                                                                 \
	} while (0)

/* Passes a failure up through a cleanup label; needs a local `status`. */
#define AG_GO(expression)                                                                          \
	do                                                                                             \
	{                                                                                              \
		status = (expression);                                                                     \
		if (status != AG_OK)                                                                       \
			goto done;                                                                             \
	} while (0)

#endif
