/*
 * plan_note.h - EXPLAIN says which models a plan's nodes predict with, and ANALYZE how many rows they scored. From PostgreSQL 18 on; there is no
 * way to say it before.
 */
#ifndef AG_PLAN_NOTE_H
#define AG_PLAN_NOTE_H

/* To be called once, when the library is loaded. */
extern void ag_plan_note_init(void);

#endif
