/*
 * plot.c - see plot.h.
 */
#include "postgres.h"

#include <math.h>

#include "pg/page.h"
#include "pg/plot.h"

/* The drawing, in units of the viewBox. */
#define WIDTH 420.0
#define HEIGHT 300.0
#define LEFT 66.0
#define RIGHT 12.0
#define TOP 10.0
#define BOTTOM 44.0

#define MOST_POINTS 300 /* of a line */
#define TICKS 5         /* about so many an axis */

static double
place(double value, double low, double high, double from, double to)
{
	double share = (value - low) / (high - low);

	return from + Max(0.0, Min(share, 1.0)) * (to - from);
}

static double
x_of(const AgPlot *plot, double x)
{
	return place(x, plot->left, plot->right, LEFT, WIDTH - RIGHT);
}

static double
y_of(const AgPlot *plot, double y)
{
	return place(y, plot->bottom, plot->top, HEIGHT - BOTTOM, TOP);
}

/* The step of ticks: 1, 2 or 5 times a power of ten. */
static double
tick_step(double low, double high)
{
	double rough = (high - low) / TICKS;
	double power = pow(10.0, floor(log10(rough)));
	double digit = rough / power;

	return power * (digit <= 1.0 ? 1.0 : digit <= 2.0 ? 2.0 : digit <= 5.0 ? 5.0 : 10.0);
}

static void
put_tick_text(StringInfo page, double value, double step)
{
	if (fabs(value) < step * 1e-9)
		value = 0.0; /* not -0 or 1e-17 */
	appendStringInfo(page, "%.4g", value);
}

static void
put_x_axis(AgPlot *plot)
{
	double step = tick_step(plot->left, plot->right);

	for (double x = ceil(plot->left / step - 1e-9) * step; x <= plot->right + step * 1e-9;
		 x += step)
	{
		double at = x_of(plot, x);

		appendStringInfo(plot->page,
						 "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"
						 "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
						 at, at, TOP, HEIGHT - BOTTOM, at, HEIGHT - BOTTOM + 16.0);
		put_tick_text(plot->page, x, step);
		appendStringInfoString(plot->page, "</text>\n");
	}
}

static void
put_y_axis(AgPlot *plot)
{
	double step = tick_step(plot->bottom, plot->top);

	for (double y = ceil(plot->bottom / step - 1e-9) * step; y <= plot->top + step * 1e-9;
		 y += step)
	{
		double at = y_of(plot, y);

		appendStringInfo(plot->page,
						 "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"
						 "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">",
						 LEFT, WIDTH - RIGHT, at, at, LEFT - 6.0, at + 4.0);
		put_tick_text(plot->page, y, step);
		appendStringInfoString(plot->page, "</text>\n");
	}
}

/* Equal bounds, and such as are too near to each other to have ticks between them, are moved apart. */
static void
widen(double *low, double *high)
{
	double least = Max(fabs(*low), fabs(*high)) * 1e-6 + 1e-12;

	if (*high - *low >= least)
		return;
	*low -= least;
	*high += least;
}

void
ag_plot_begin(AgPlot *plot, StringInfo page, const char *title, const char *x_label,
			  const char *y_label, double left, double right, double bottom, double top)
{
	plot->page = page;
	plot->left = left;
	plot->right = right;
	plot->bottom = bottom;
	plot->top = top;
	initStringInfo(&plot->names);
	widen(&plot->left, &plot->right);
	widen(&plot->bottom, &plot->top);
	appendStringInfoString(page, "<figure><figcaption>");
	ag_page_text(page, title);
	appendStringInfo(page,
					 "</figcaption>\n<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"",
					 WIDTH, HEIGHT);
	ag_page_text(page, title);
	appendStringInfoString(page, "\">\n");
	put_x_axis(plot);
	put_y_axis(plot);
	appendStringInfo(page, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
					 (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8.0);
	ag_page_text(page, x_label);
	appendStringInfo(
		page, "</text>\n<text transform=\"translate(14 %.1f) rotate(-90)\" text-anchor=\"middle\">",
		(TOP + HEIGHT - BOTTOM) / 2);
	ag_page_text(page, y_label);
	appendStringInfoString(page, "</text>\n");
}

void
ag_plot_end(AgPlot *plot)
{
	appendStringInfoString(plot->page, "</svg>");
	if (plot->names.len > 0)
		appendStringInfo(plot->page, "<div class=\"names\">%s</div>", plot->names.data);
	appendStringInfoString(plot->page, "</figure>\n");
	pfree(plot->names.data);
}

static bool
is_drawn(const AgPoint *point)
{
	return isfinite(point->x) && isfinite(point->y);
}

void
ag_plot_line(AgPlot *plot, int series, int64 n, const AgPoint *points)
{
	int64 n_drawn = Min(n, MOST_POINTS);

	if (n == 0)
		return;
	appendStringInfo(plot->page, "<polyline class=\"l s%d\" points=\"", series);
	for (int64 i = 0; i < n_drawn; i++)
	{
		/* evenly through the points, the last one for the last */
		const AgPoint *point =
			&points[n_drawn == 1 ? 0 : (int64) ((double) i * (n - 1) / (n_drawn - 1) + 0.5)];

		if (is_drawn(point))
			appendStringInfo(plot->page, "%.1f,%.1f ", x_of(plot, point->x), y_of(plot, point->y));
	}
	appendStringInfoString(plot->page, "\"/>\n");
}

void
ag_plot_dots(AgPlot *plot, int series, int64 n, const AgPoint *points)
{
	for (int64 i = 0; i < n; i++)
		if (is_drawn(&points[i]))
			appendStringInfo(plot->page,
							 "<circle class=\"s%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>\n", series,
							 x_of(plot, points[i].x), y_of(plot, points[i].y));
}

void
ag_plot_bar(AgPlot *plot, int series, double from, double to, double y)
{
	double left = x_of(plot, from), top = y_of(plot, y);

	appendStringInfo(plot->page,
					 "<rect class=\"s%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
					 series, left + 0.5, top, Max(x_of(plot, to) - left - 1.0, 0.5),
					 Max(y_of(plot, 0.0) - top, 0.0));
}

void
ag_plot_guide(AgPlot *plot, double x0, double y0, double x1, double y1)
{
	appendStringInfo(plot->page,
					 "<line class=\"guide\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
					 x_of(plot, x0), y_of(plot, y0), x_of(plot, x1), y_of(plot, y1));
}

void
ag_plot_name(AgPlot *plot, int series, const char *name)
{
	appendStringInfo(&plot->names, "<span><i style=\"background:var(--s%d)\"></i>", series);
	ag_page_text(&plot->names, name);
	appendStringInfoString(&plot->names, "</span> ");
}
