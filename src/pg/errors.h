/*
 * errors.h - faults of the engine as PostgreSQL errors, and texts between UTF-8 and the server's encoding.
 */
#ifndef AG_ERRORS_H
#define AG_ERRORS_H

#include "postgres.h"

#include "engine/base/status.h"
#include "pg/compat.h"

/* The SQLSTATE that a status stands for (status.h has the list). */
extern int ag_error_sqlstate(AgStatus status);

/* Raises err as an ERROR: its texts are UTF-8 and are converted. */
pg_noreturn extern void ag_error_raise(const AgError *err);

/* Raises err unless status is AG_OK. */
static inline void
ag_error_check(AgStatus status, const AgError *err)
{
	if (status != AG_OK)
		ag_error_raise(err);
}

/*
 * A text for messages in the server's encoding, palloc'd: never an error; where the encoding lacks a character (or
 * the bytes are no UTF-8) every non-ASCII byte becomes '?'.
 */
extern char *ag_message_from_utf8(const char *text);

/*
 * A name or value, exactly: in the server's encoding from UTF-8, and back. Palloc'd or the argument itself. ERROR 22P05 where
 * a character has no counterpart. An SQL_ASCII server's bytes are passed as they are.
 */
extern char *ag_text_from_utf8(const char *text);
extern char *ag_text_to_utf8(const char *text);

#endif
