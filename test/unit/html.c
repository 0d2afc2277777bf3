/*
 * html.c - what text becomes in a page: markup, characters beyond ASCII, and bytes that are no text.
 */
#include <string.h>

#include "engine/base/html.h"
#include "unit/unit.h"

static char out[256];

static const char *
escaped(const char *text, size_t n)
{
	out[ag_html_escape(text, n, out)] = '\0';
	return out;
}

static const char *
escape(const char *text)
{
	return escaped(text, strlen(text));
}

int
main(void)
{
	AG_CHECK_STR(escape(""), "");
	AG_CHECK_STR(escape("plain text, 1 + 2"), "plain text, 1 + 2");
	AG_CHECK_STR(escape("<script>alert(\"a\" & 'b')</script>"),
				 "&lt;script&gt;alert(&quot;a&quot; &amp; &#39;b&#39;)&lt;/script&gt;");
	AG_CHECK_STR(escape("a\tb\nc\rd"), "a b c d");
	AG_CHECK_STR(escaped("a\0b", 3), "a&#65533;b");
	AG_CHECK_STR(escape("\x01\x7f\xc2\x80"), "&#65533;&#65533;&#65533;");
	/* one character of each length, and the last one there is */
	AG_CHECK_STR(escape("\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x98"), "&#233;&#8364;&#128024;");
	AG_CHECK_STR(escape("\xf4\x8f\xbf\xbd"), "&#1114109;");
	/* too long a form, a surrogate, past the last character, noncharacters */
	AG_CHECK_STR(escape("\xc0\xbc"), "&#65533;&#65533;");
	AG_CHECK_STR(escape("\xe0\x80\xbc"), "&#65533;&#65533;&#65533;");
	AG_CHECK_STR(escape("\xed\xa0\x80"), "&#65533;&#65533;&#65533;");
	AG_CHECK_STR(escape("\xf4\x90\x80\x80"), "&#65533;&#65533;&#65533;&#65533;");
	AG_CHECK_STR(escape("\xef\xbf\xbe"), "&#65533;");
	AG_CHECK_STR(escape("\xef\xb7\x90"), "&#65533;");
	/* cut short: the markup behind is not swallowed */
	AG_CHECK_STR(escape("\xe2\x82<"), "&#65533;&#65533;&lt;");
	AG_CHECK_STR(escape("\xf0<b>"), "&#65533;&lt;b&gt;");
	AG_CHECK_STR(escaped("\xe2\x82\xac", 2), "&#65533;&#65533;");
	return ag_unit_done("html");
}
