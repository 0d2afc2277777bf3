/*
 * plot.h - plots as inline SVG in a page (page.h, whose style they use): points and lines over two axes with ticks at round numbers.
 */
#ifndef AG_PLOT_H
#define AG_PLOT_H

#include "postgres.h"

#include "lib/stringinfo.h"

#define AG_PLOT_SERIES 6 /* colours that there are */

typedef struct AgPoint
{
	double x, y;
} AgPoint;

typedef struct AgPlot
{
	StringInfo page;
	double left, right, bottom, top; /* values at the axes' ends */
	StringInfoData names;            /* the legend */
} AgPlot;

/*
 * Begins a plot of x from `left` to `right` and y from `bottom` to `top`, finite; where two bounds are equal the range is widened. Texts in
 * the server's encoding.
 */
extern void ag_plot_begin(AgPlot *plot, StringInfo page, const char *title, const char *x_label,
						  const char *y_label, double left, double right, double bottom,
						  double top);
extern void ag_plot_end(AgPlot *plot);

/*
 * What is drawn takes the colour of a series, 0 <= series < AG_PLOT_SERIES. Points outside the axes are drawn at their edge; those that
 * aren't finite are left out. A line of many points is drawn through some hundred of them, its ends always among them.
 */
extern void ag_plot_line(AgPlot *plot, int series, int64 n, const AgPoint *points);
extern void ag_plot_dots(AgPlot *plot, int series, int64 n, const AgPoint *points);

/* A bar from y = 0 to y between two values of x. */
extern void ag_plot_bar(AgPlot *plot, int series, double from, double to, double y);

/* A dashed line to compare with. */
extern void ag_plot_guide(AgPlot *plot, double x0, double y0, double x1, double y1);

/* A series' name, for the legend below the plot. */
extern void ag_plot_name(AgPlot *plot, int series, const char *name);

#endif
