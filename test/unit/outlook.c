/*
 * outlook.c - what is said of a fit's end, by a clock of the test's own: of fits whose models take what a family usually does or many times that, with and
 * without a limit, the guess is right within a factor of two after the first tenth, but where nothing could tell.
 */
#include <math.h>

#include "engine/search/outlook.h"
#include "unit/unit.h"

typedef struct Planned
{
	AgFamilyId family;
	double seconds;
} Planned;

/* The share that is said to be done at that moment of a fit whose models come one after the other. */
static double
done_at(const Planned *plan, int n, double now, double limit)
{
	AgOutlook outlook = {{0.0}, {0.0}, {0.0}};
	double at = 0.0;

	for (int i = 0; i < n; i++)
	{
		double units = ag_outlook_units(plan[i].family);
		double spent = fmin(fmax(now - at, 0.0), plan[i].seconds);

		if (spent > 0.0)
			ag_outlook_took(&outlook, plan[i].family, units * spent / plan[i].seconds, spent);
		ag_outlook_waits(&outlook, plan[i].family, units * (1.0 - spent / plan[i].seconds));
		at += plan[i].seconds;
	}
	return ag_outlook_done(&outlook, now, limit);
}

/* How wrong what remains is at worst, as a factor, from the first tenth to the last twentieth. */
static double
worst(const Planned *plan, int n, double limit)
{
	double total = 0.0, worst = 1.0;

	for (int i = 0; i < n; i++)
		total += plan[i].seconds;
	total = fmin(total, limit);
	for (double now = total / 10.0; now < total * 0.95; now += total / 200.0)
	{
		double done = done_at(plan, n, now, limit), left = now * (1.0 - done) / done;
		double truth = total - now, factor = left > truth ? left / truth : truth / left;

		AG_CHECK(done > 0.0 && done < 1.0);
		worst = fmax(worst, factor);
	}
	return worst;
}

static void
test_right(void)
{
	/* as the units have it, in any number of seconds, and in any order */
	static const Planned usual[] = {{AG_FAMILY_GBM, 6.0},
									{AG_FAMILY_LR, 1.0},
									{AG_FAMILY_NN_TORCH, 10.0},
									{AG_FAMILY_CAT, 16.0},
									{AG_FAMILY_XT, 12.0}};
	static const Planned turned[] = {
		{AG_FAMILY_LR, 0.01}, {AG_FAMILY_CAT, 0.16}, {AG_FAMILY_GBM, 0.04}};
	/* a family that takes five times as long as usual: known from its second model on */
	static const Planned odd[] = {{AG_FAMILY_GBM, 4.0}, {AG_FAMILY_CAT, 60.0},
								  {AG_FAMILY_GBM, 4.0}, {AG_FAMILY_CAT, 60.0},
								  {AG_FAMILY_GBM, 4.0}, {AG_FAMILY_CAT, 60.0}};
	/* a first model that is over at once, and one that takes longer than usual */
	static const Planned late[] = {
		{AG_FAMILY_LR, 0.1}, {AG_FAMILY_GBM, 3.0}, {AG_FAMILY_XT, 3.0}, {AG_FAMILY_RF, 5.0}};

	AG_CHECK(worst(usual, 5, INFINITY) < 2.0);
	AG_CHECK(worst(turned, 3, INFINITY) < 2.0);
	AG_CHECK(worst(odd, 6, INFINITY) < 2.0);
	AG_CHECK(worst(late, 4, INFINITY) < 2.0);
	/* the limit comes first */
	AG_CHECK(worst(usual, 5, 20.0) < 1.05);
	AG_CHECK(worst(odd, 6, 60.0) < 1.05);
}

static void
test_edges(void)
{
	AgOutlook outlook = {{0.0}, {0.0}, {0.0}};

	/* nothing done, nothing known; nor without a clock */
	ag_outlook_waits(&outlook, AG_FAMILY_GBM, 3.0);
	AG_CHECK(ag_outlook_done(&outlook, 1.0, INFINITY) == -1.0);
	AG_CHECK(ag_outlook_done(&outlook, 1.0, 60.0) == -1.0);
	ag_outlook_took(&outlook, AG_FAMILY_GBM, 3.0, 2.0);
	AG_CHECK(ag_outlook_done(&outlook, 0.0, 60.0) == -1.0);
	AG_CHECK_NEAR(ag_outlook_left(&outlook), 2.0, 1e-12);
	AG_CHECK_NEAR(ag_outlook_done(&outlook, 2.0, INFINITY), 0.5 / 1.04, 1e-12);
	/* a family that was not seen takes what others do a unit */
	ag_outlook_waits(&outlook, AG_FAMILY_CAT, 6.0);
	AG_CHECK_NEAR(ag_outlook_left(&outlook), 6.0, 1e-12);
	/* beyond its limit it is as good as done, never all of it */
	AG_CHECK_NEAR(ag_outlook_done(&outlook, 61.0, 60.0), 0.99, 1e-12);
	for (int f = 0; f < AG_FAMILY_LAST; f++)
		AG_CHECK(ag_outlook_units((AgFamilyId) f) > 0.0);
}

int
main(void)
{
	test_right();
	test_edges();
	return ag_unit_done("outlook");
}
