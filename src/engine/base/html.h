/*
 * html.h - text from elsewhere as HTML that shows it and does nothing else.
 */
#ifndef AG_HTML_H
#define AG_HTML_H

#include <stddef.h>

/* At most so many bytes come of one byte of text. */
#define AG_HTML_GROWTH 8

/*
 * Writes n_bytes of text as ASCII that an HTML or SVG document shows as that text, in an element as in a quoted attribute; out has room for
 * n_bytes * AG_HTML_GROWTH bytes, and no NUL is put behind. Characters beyond ASCII become numeric references, so the page
 * reads the same in any encoding. What is no character that HTML allows (control characters, bytes that are no UTF-8, surrogates, noncharacters)
 * becomes U+FFFD, and white space other than a blank a blank. Gives the number of bytes written.
 */
size_t ag_html_escape(const char *text, size_t n_bytes, char *out);

#endif
