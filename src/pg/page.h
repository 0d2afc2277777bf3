/*
 * page.h - an HTML page that needs nothing else: its style is in it, there are no scripts and no links. It is ASCII, whatever texts it shows.
 */
#ifndef AG_PAGE_H
#define AG_PAGE_H

#include "postgres.h"

#include "lib/stringinfo.h"

/* Everything before the first section and behind the last one. title in the server's encoding, as all texts here. */
extern void ag_page_begin(StringInfo page, const char *title);
extern void ag_page_end(StringInfo page);

/* A text, escaped. */
extern void ag_page_text(StringInfo page, const char *text);

/* A number to read: five significant digits, a dash for NaN. */
extern void ag_page_number(StringInfo page, double value);

/* note: a sentence below the heading, or NULL. */
extern void ag_page_section(StringInfo page, const char *heading, const char *note);
extern void ag_page_section_end(StringInfo page);

/* A table: its headings (a heading that begins with '#' stands over numbers), then rows of as many cells. */
extern void ag_page_table(StringInfo page, int n, const char *const *headings);
extern void ag_page_table_end(StringInfo page);
extern void ag_page_row(StringInfo page);
extern void ag_page_row_end(StringInfo page);
extern void ag_page_cell(StringInfo page, const char *text);
extern void ag_page_number_cell(StringInfo page, double value);

/* Seconds, to the millisecond. */
extern void ag_page_seconds_cell(StringInfo page, double seconds);

/* A number with a bar behind it, of that share (0 to 1) of the cell; below 0: to the left, in another colour. */
extern void ag_page_bar_cell(StringInfo page, double value, double share);

#endif
