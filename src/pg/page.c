/*
 * page.c - see page.h.
 */
#include "postgres.h"

#include <math.h>

#include "utils/memutils.h"

#include "engine/base/html.h"
#include "pg/errors.h"
#include "pg/page.h"

/*
 * Colours are variables, so that plots follow the reader's light or dark scheme; on paper it is light. The series' colours are
 * told apart by eyes that see red and green alike (Okabe and Ito's set, darkened or lightened to stand out from the ground).
 */
static const char *const style =
	"<style>\n"
	":root{color-scheme:light "
	"dark;--ground:#fff;--card:#f6f7f9;--ink:#1c2330;--soft:#5d6778;--line:#d9dee6;--good:#0b6bb5;-"
	"-bad:#c2500a;"
	"--s0:#0b6bb5;--s1:#c2500a;--s2:#00856a;--s3:#a4417e;--s4:#8a6d00;--s5:#3a87b8}\n"
	"@media screen and "
	"(prefers-color-scheme:dark){:root{--ground:#14181f;--card:#1d232d;--ink:#e8ecf2;--soft:#"
	"9aa5b5;--line:#353e4c;"
	"--good:#5db3f0;--bad:#f0924c;--s0:#5db3f0;--s1:#f0924c;--s2:#3cc9a7;--s3:#dd86bd;--s4:#d8bf45;"
	"--s5:#9fd0ea}}\n"
	"*{box-sizing:border-box}\n"
	"body{margin:0 auto;padding:2rem 1.25rem "
	"4rem;max-width:72rem;background:var(--ground);color:var(--ink);"
	"font:15px/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,Helvetica,Arial,sans-serif}\n"
	"h1{font-size:1.8rem;line-height:1.2;margin:0;overflow-wrap:anywhere}\n"
	"h2{font-size:1.15rem;margin:2.2rem 0 .5rem;padding-bottom:.3rem;border-bottom:1px solid "
	"var(--line)}\n"
	"p{margin:.3rem 0 .8rem;color:var(--soft);max-width:60rem}\n"
	".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.75rem;"
	"margin:1.4rem 0}\n"
	".tile{background:var(--card);border-radius:.5rem;padding:.7rem .9rem;overflow-wrap:anywhere}\n"
	".tile b{display:block;font-size:1.25rem;font-variant-numeric:tabular-nums}\n"
	".tile span{color:var(--soft);font-size:.85rem}\n"
	".wide{overflow-x:auto}\n"
	"table{border-collapse:collapse;font-variant-numeric:tabular-nums;min-width:20rem}\n"
	"th,td{padding:.3rem .8rem .3rem 0;text-align:left;vertical-align:top;border-bottom:1px solid "
	"var(--line);overflow-wrap:break-word}\n"
	"th{color:var(--soft);font-weight:600;font-size:.85rem;white-space:nowrap}\n"
	"th.n,td.n{text-align:right;white-space:nowrap}\n"
	"td.bar{min-width:14rem;width:14rem}\n"
	"td.bar "
	"i{display:inline-block;height:.7rem;border-radius:.15rem;background:var(--good);vertical-"
	"align:baseline}\n"
	"td.bar i.below{background:var(--bad)}\n"
	"td.heat{text-align:right;min-width:3.5rem;padding:.3rem .6rem;border:1px solid var(--ground);"
	"background:color-mix(in srgb,var(--c) calc(var(--share)*60%),transparent)}\n"
	".plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(20rem,1fr));gap:1.25rem}\n"
	"figure{margin:0;background:var(--card);border-radius:.5rem;padding:.8rem;break-inside:avoid}\n"
	"figcaption{font-weight:600;margin-bottom:.3rem}\n"
	"svg{display:block;width:100%;height:auto}\n"
	"svg text{font:13px system-ui,-apple-system,\"Segoe "
	"UI\",Roboto,Helvetica,Arial,sans-serif;fill:var(--soft)}\n"
	"svg .grid{stroke:var(--line);stroke-width:1}\n"
	"svg .guide{stroke:var(--soft);stroke-width:1;stroke-dasharray:4 4;fill:none}\n"
	"svg .l{fill:none;stroke-width:2;stroke-linejoin:round}\n"
	"svg .s0{stroke:var(--s0);fill:var(--s0)}svg .s1{stroke:var(--s1);fill:var(--s1)}svg "
	".s2{stroke:var(--s2);fill:var(--s2)}\n"
	"svg .s3{stroke:var(--s3);fill:var(--s3)}svg .s4{stroke:var(--s4);fill:var(--s4)}svg "
	".s5{stroke:var(--s5);fill:var(--s5)}\n"
	"svg .l.s0,svg .l.s1,svg .l.s2,svg .l.s3,svg .l.s4,svg .l.s5{fill:none}\n"
	"svg circle{stroke:none;fill-opacity:.45}svg rect{stroke:none}\n"
	".names{display:flex;flex-wrap:wrap;gap:.1rem "
	".9rem;margin-top:.4rem;font-size:.85rem;color:var(--soft);overflow-wrap:anywhere}\n"
	".names "
	"i{display:inline-block;width:.7rem;height:.7rem;border-radius:.15rem;margin-right:.35rem}\n"
	".warn{border-left:.3rem solid "
	"var(--bad);background:var(--card);border-radius:.3rem;padding:.5rem .9rem;margin:.5rem 0}\n"
	"footer{margin-top:3rem;color:var(--soft);font-size:.85rem}\n"
	"@media "
	"print{body{padding:0;max-width:none;font-size:11px}h2{break-after:avoid}tr,.tile{break-inside:"
	"avoid}"
	".wide{overflow:visible}*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}\n"
	"</style>\n";

void
ag_page_text(StringInfo page, const char *text)
{
	const char *utf8 = ag_text_to_utf8(text);
	size_t n = strlen(utf8);

	if (n > (MaxAllocSize - 1) / AG_HTML_GROWTH)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("the text is too long for a report")));
	enlargeStringInfo(page, (int) (n * AG_HTML_GROWTH));
	page->len += (int) ag_html_escape(utf8, n, page->data + page->len);
	page->data[page->len] = '\0';
}

void
ag_page_number(StringInfo page, double value)
{
	if (isnan(value))
		appendStringInfoString(page, "&#8211;");
	else if (value == rint(value) && fabs(value) < 1e9)
		appendStringInfo(page, "%.0f", value);
	else
		appendStringInfo(page, "%.5g", value);
}

void
ag_page_begin(StringInfo page, const char *title)
{
	appendStringInfoString(
		page, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"us-ascii\">\n"
			  "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
			  "style-src 'unsafe-inline'\">\n"
			  "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
	ag_page_text(page, title);
	appendStringInfoString(page, "</title>\n");
	appendStringInfoString(page, style);
	appendStringInfoString(page, "</head>\n<body>\n");
}

void
ag_page_end(StringInfo page)
{
	appendStringInfoString(page, "</body>\n</html>\n");
}

void
ag_page_section(StringInfo page, const char *heading, const char *note)
{
	appendStringInfoString(page, "<section>\n<h2>");
	ag_page_text(page, heading);
	appendStringInfoString(page, "</h2>\n");
	if (note == NULL)
		return;
	appendStringInfoString(page, "<p>");
	ag_page_text(page, note);
	appendStringInfoString(page, "</p>\n");
}

void
ag_page_section_end(StringInfo page)
{
	appendStringInfoString(page, "</section>\n");
}

void
ag_page_table(StringInfo page, int n, const char *const *headings)
{
	appendStringInfoString(page, "<div class=\"wide\"><table>\n<thead><tr>");
	for (int i = 0; i < n; i++)
	{
		bool is_number = headings[i][0] == '#';

		appendStringInfoString(page,
							   is_number ? "<th class=\"n\" scope=\"col\">" : "<th scope=\"col\">");
		ag_page_text(page, headings[i] + is_number);
		appendStringInfoString(page, "</th>");
	}
	appendStringInfoString(page, "</tr></thead>\n<tbody>\n");
}

void
ag_page_table_end(StringInfo page)
{
	appendStringInfoString(page, "</tbody></table></div>\n");
}

void
ag_page_row(StringInfo page)
{
	appendStringInfoString(page, "<tr>");
}

void
ag_page_row_end(StringInfo page)
{
	appendStringInfoString(page, "</tr>\n");
}

void
ag_page_cell(StringInfo page, const char *text)
{
	appendStringInfoString(page, "<td>");
	if (text != NULL)
		ag_page_text(page, text);
	appendStringInfoString(page, "</td>");
}

void
ag_page_number_cell(StringInfo page, double value)
{
	appendStringInfoString(page, "<td class=\"n\">");
	ag_page_number(page, value);
	appendStringInfoString(page, "</td>");
}

void
ag_page_seconds_cell(StringInfo page, double seconds)
{
	if (isnan(seconds))
		ag_page_number_cell(page, seconds);
	else
		appendStringInfo(page, "<td class=\"n\">%.3f</td>", seconds);
}

void
ag_page_bar_cell(StringInfo page, double value, double share)
{
	double length = isnan(share) ? 0.0 : Min(fabs(share), 1.0);

	appendStringInfo(page, "<td class=\"bar\"><i%s style=\"width:%.1f%%\"></i> ",
					 share < 0 ? " class=\"below\"" : "", length * 60.0);
	ag_page_number(page, value);
	appendStringInfoString(page, "</td>");
}
