-- The demo: what `make demo` plays in a throw-away server. \qecho tells the story between the statements.
CREATE EXTENSION ag_pg;
\i test/demo_data.sql
\set ECHO queries

\qecho
\qecho A table: invented people, and what their health insurance paid for them in a year.
SELECT * FROM expenses LIMIT 3;

\qecho
\qecho Fit a predictor of the column "Expense", on a GPU if there is one.
SELECT ag_fit('expenses','Expense','{"ag_args_fit":{"num_gpus":1}}');

\qecho
\qecho What was fitted, and what ran where.
SELECT model, round(score_val::numeric, 1) AS score_val, eval_metric, round(fit_time::numeric, 2) AS fit_time, device, num_gpus, num_cpus
FROM ag_leaderboard('expenses_expense');

\qecho
\qecho Predict, row by row, in any query.
SELECT e.age, e.bmi, e.smoker, e."Expense", round(ag_predict('expenses_expense', e)::numeric, 2) AS predicted
FROM expenses AS e
ORDER BY e.age, e.bmi
LIMIT 5;

\qecho
\qecho Ask what if: the same person, smoking or not.
SELECT who.smoker, round(ag_predict('expenses_expense', who)::numeric, 2) AS predicted
FROM (VALUES (45, 'female', 33.0, 2, 'no', 'southwest'), (45, 'female', 33.0, 2, 'yes', 'southwest'))
     AS who (age, sex, bmi, children, smoker, region);

\qecho
\qecho How good is it, on the rows it was fitted with?
SELECT metric, round(value::numeric, 3) AS value FROM ag_evaluate('expenses_expense', 'expenses');
