-- ag_drift: population stability index and the rest, as SQL over both tables computes them
SET client_min_messages = warning;
CREATE TABLE before AS SELECT (i * 37 % 1000)::float8 AS x, CASE WHEN i % 10 > 0 THEN 'k' || (i % 7) ^ 2 END AS k, date '2024-01-01' + i % 100 AS d, (i * 37 % 1000) + i % 7 AS y
    FROM generate_series(1, 2000) i;
CREATE TABLE after AS SELECT CASE WHEN i % 20 > 0 THEN (i * 31 % 1000) * 1.1 + 20 END AS x, CASE WHEN i % 4 > 0 THEN 'k' || (i % 9) ^ 2 END AS k, date '2024-03-01' + i % 100 AS d
    FROM generate_series(1, 1500) i;
SELECT ag_fit('before', 'y', '{"name": "m", "verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 10}}}');

-- bins: deciles (values at ranks n/10, 2n/10, ...) and the missing, or categories and the missing
CREATE FUNCTION psi(OUT psi float8, bins_before text, bins_after text) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('SELECT sum((q - p) * ln(q / p)) FROM (SELECT greatest(coalesce(p, 0), 1e-4) AS p, greatest(coalesce(q, 0), 1e-4) AS q
        FROM (SELECT b, count(*) / sum(count(*)) OVER ()::float8 AS p FROM (%s) s (b) GROUP BY b) f FULL JOIN
             (SELECT b, count(*) / sum(count(*)) OVER ()::float8 AS q FROM (%s) s (b) GROUP BY b) n ON coalesce(f.b, ''-'') = coalesce(n.b, ''-'')) t', bins_before, bins_after) INTO psi;
END $$;
CREATE FUNCTION decile(x float8) RETURNS text LANGUAGE sql AS $$
    SELECT CASE WHEN x IS NOT NULL THEN (SELECT count(*)::text FROM (SELECT percentile_disc(ARRAY[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]) WITHIN GROUP (ORDER BY b.x) AS cuts FROM before b) c, unnest(cuts) cut
        WHERE x > cut) END $$;
CREATE FUNCTION decile(d date) RETURNS text LANGUAGE sql AS $$
    SELECT count(*)::text FROM (SELECT percentile_disc(ARRAY[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]) WITHIN GROUP (ORDER BY b.d) AS cuts FROM before b) c, unnest(cuts) cut WHERE decile.d > cut $$;
SELECT feature, abs(a.psi - s.psi) < 1e-9 AS as_sql_has_it, a.psi > 0.25 AS far, round(missing_before::numeric, 3) AS missing_before, round(missing_now::numeric, 3) AS missing_now
FROM ag_drift('m', 'after') a, LATERAL (SELECT * FROM psi(CASE feature WHEN 'k' THEN 'SELECT k FROM before' ELSE format('SELECT decile(%I) FROM before', feature) END,
    CASE feature WHEN 'k' THEN 'SELECT CASE WHEN k IN (SELECT k FROM before) THEN k WHEN k IS NOT NULL THEN ''new'' END FROM after' ELSE format('SELECT decile(%I) FROM after', feature) END)) s
ORDER BY feature;
SELECT feature, abs(unseen - CASE feature WHEN 'k' THEN (SELECT avg((k NOT IN (SELECT k FROM before WHERE k IS NOT NULL))::int) FROM after WHERE k IS NOT NULL)
    WHEN 'x' THEN (SELECT avg((x > 999)::int) FROM after WHERE x IS NOT NULL) END) < 1e-12 AS unseen FROM ag_drift('m', 'after') ORDER BY feature;
-- the same rows are no drift, whatever their order; the farthest first; no rows, nothing to say
SELECT max(abs(psi)) < 1e-12 AS same, max(unseen) AS unseen FROM ag_drift('m', 'SELECT * FROM before ORDER BY y DESC');
SELECT count(*), bool_and(psi <= last) FROM (SELECT psi, lag(psi) OVER () AS last FROM ag_drift('m', 'SELECT d, x, k FROM after')) s;
SELECT * FROM ag_drift('m', 'SELECT * FROM after WHERE false');
SELECT * FROM ag_drift('m', 'SELECT x FROM after');
SELECT count(*) FROM ag_drift(NULL, 'after');
-- it tells of the training data, so it takes the right to inspect
CREATE ROLE ag_guest;
GRANT SELECT ON after TO ag_guest;
SELECT ag_grant('m', 'ag_guest');
SET ROLE ag_guest;
SELECT * FROM ag_drift('m', 'after');
RESET ROLE;
SELECT ag_grant('m', 'ag_guest', 'inspect');
SET ROLE ag_guest;
SELECT count(*) FROM ag_drift('m', 'after');
RESET ROLE;
SELECT ag_drop('m');
DROP FUNCTION psi, decile(date), decile(float8);
DROP TABLE before, after;
DROP ROLE ag_guest;
