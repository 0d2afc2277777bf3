-- the planner knows what a model costs: cheap filters go first, a dear model last; and on PostgreSQL 18 and newer EXPLAIN names models and counts rows
SET client_min_messages = warning;
\set quick '{"verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 5}}}'
\set slow '{"verbosity": 0, "hyperparameters": {"GBM": {"num_boost_round": 3000, "learning_rate": 0.001}}, "ag_args_fit": {"early_stop": null}}'
CREATE TABLE item AS SELECT i AS id, i % 31 AS x, 'k' || i % 5 AS k, (i % 31) * 1.5 + i % 5 AS y, i % 31 > 15 AS c FROM generate_series(1, 400) i;
CREATE TABLE many AS SELECT x, k, y FROM item, generate_series(1, 20);
ANALYZE item, many;
SELECT ag_fit('SELECT x, k, y FROM item', 'y', :'quick'::jsonb || '{"name": "cheap"}');
SELECT ag_fit('SELECT x, k, y FROM item', 'y', :'slow'::jsonb || '{"name": "dear"}');
SELECT ag_fit('SELECT x, k, c FROM item', 'c', :'quick'::jsonb || '{"name": "cls"}');
CREATE FUNCTION middling(int) RETURNS boolean LANGUAGE plpgsql STABLE COST 200 AS 'BEGIN RETURN $1 > 3; END';

-- the order in which a filter's parts are evaluated
CREATE FUNCTION filters(condition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; found text := '';
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS off) SELECT count(*) FROM item r WHERE ' || condition LOOP
        IF line ~ 'Filter: ' THEN
            SELECT string_agg(m[1], ' ' ORDER BY n) INTO found FROM regexp_matches(line, '(cheap|dear|cls|middling|id % 2)', 'g') WITH ORDINALITY AS t(m, n);
        END IF;
    END LOOP;
    RETURN found;
END $$;
SELECT filters($$ag_predict('dear', r) > 1 AND middling(x) AND ag_predict('cheap', r) > 1 AND id % 2 = 0$$) AS item;
SELECT filters($$ag_predict('dear', to_jsonb(r)) > 1 AND middling(x) AND id % 2 = 0$$) AS json;
SELECT filters($$ag_predict('dear', '{"x": 1, "k": "k1"}'::text, x) > 1 AND middling(x) AND id % 2 = 0$$) AS typed;
SELECT filters($$ag_predict_proba('cls', r, true) > 0.1 AND middling(x) AND id % 2 = 0$$) AS of_a_class;
SELECT filters($$(ag_predict_interval('dear', r))[1] > 1 AND ag_predict_class('cls', r) = 'true' AND middling(x)$$) AS others;
-- a model that isn't there, or isn't the user's, has the functions' own cost, and is an error only when it runs
SELECT filters($$ag_predict('nobody', r) > 1 AND middling(x) AND id % 2 = 0 AND ag_predict('dear', r) > 1$$) ~ '^id % 2' AS unknown;
SELECT filters($$ag_predict('dear/NOPE', to_jsonb(r)) > 1 AND id % 2 = 0$$) AS no_member;
CREATE ROLE regress_cost_reader;
GRANT SELECT ON item TO regress_cost_reader;
SET ROLE regress_cost_reader;
SELECT filters($$ag_predict('dear', r) > 1 AND middling(x)$$) AS not_mine;
RESET ROLE;
-- what ag_create_function makes has the cost of its model
SELECT ag_create_function('cheap', 'cheap_y', 'item'), ag_create_function('dear', 'dear_y', 'item');
SELECT (SELECT procost FROM pg_proc WHERE proname = 'dear_y') > 20 * (SELECT procost FROM pg_proc WHERE proname = 'cheap_y') AS dearer;
SELECT filters($$r.dear_y > 1 AND middling(x) AND r.cheap_y > 1$$) AS functions;

-- rows and cost of a whole table
CREATE FUNCTION planned(query text, what text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE plan jsonb;
BEGIN EXECUTE 'EXPLAIN (FORMAT json) ' || query INTO plan; RETURN plan #> ARRAY['0', 'Plan', what]; END $$;
SELECT planned($$SELECT * FROM ag_predict_table('cheap', 'item')$$, 'Plan Rows') AS item, planned($$SELECT * FROM ag_predict_table('cheap', 'public."many"')$$, 'Plan Rows') AS many,
    planned($$SELECT * FROM ag_predict_table('cheap', 'SELECT * FROM item LIMIT 7')$$, 'Plan Rows') AS query, planned($$SELECT * FROM ag_predict_table('nobody', 'nothing.at.all')$$, 'Plan Rows') AS nothing,
    planned($$SELECT * FROM ag_predict_table('cheap', 'no such table"')$$, 'Plan Rows') AS no_name;
SELECT planned($$SELECT * FROM ag_predict_table('cheap', 'many')$$, 'Total Cost') > 10 * planned($$SELECT * FROM ag_predict_table('cheap', 'item')$$, 'Total Cost') AS by_rows,
    planned($$SELECT * FROM ag_predict_table('dear', 'item')$$, 'Total Cost') > 10 * planned($$SELECT * FROM ag_predict_table('cheap', 'item')$$, 'Total Cost') AS by_model;

-- what EXPLAIN says of models: all of it from 18 on, nothing before
CREATE FUNCTION told(query text, expected text, options text DEFAULT 'ANALYZE, TIMING off, SUMMARY off, COSTS off') RETURNS text LANGUAGE plpgsql AS $$
DECLARE plan jsonb; found text;
BEGIN
    EXECUTE 'EXPLAIN (FORMAT json, ' || options || ') ' || query INTO plan;
    SELECT string_agg(concat_ws(' ', concat_ws('@', m ->> 'Name', m ->> 'Version'), m ->> 'Rows Scored'), ', ' ORDER BY m ->> 'Name', m) INTO found
        FROM jsonb_path_query(plan, 'strict $.**.Models[*]') AS m;
    IF current_setting('server_version_num')::int < 180000 THEN
        RETURN CASE WHEN found IS NULL THEN expected ELSE 'told: ' || found END;
    END IF;
    RETURN found;
END $$;
SET max_parallel_workers_per_gather = 0;
SELECT told($$SELECT ag_predict('cheap', r) FROM item r$$, 'cheap@1 400');
SELECT told($$SELECT ag_predict('cheap', r) FROM item r$$, 'cheap@1', 'COSTS off');
SELECT told($$SELECT avg(ag_predict('cheap', r)), max(ag_predict('dear@1', to_jsonb(r))) FROM item r$$, 'cheap@1 400, dear@1@1 400');
SELECT told($$SELECT k, sum(ag_predict('cheap', r)) FILTER (WHERE ag_predict_class('cls', r) = 'true') FROM item r GROUP BY k$$, 'cheap@1 193, cls@1 400');
SELECT told($$SELECT count(*) FROM item r WHERE id % 4 = 0 AND ag_predict('cheap', r) > -1000$$, 'cheap@1 100');
SELECT told($$SELECT r.cheap_y FROM item r LIMIT 10$$, 'cheap@1 10');
SELECT told($$SELECT ag_predict('cheap', r), ag_predict('cheap', r) FROM item r ORDER BY ag_predict('cheap', r) LIMIT 3$$, 'cheap@1 400');
SELECT told($$SELECT ag_predict(m, r) FROM item r, (VALUES ('cheap'), ('dear')) v (m)$$, 'cheap@1 400, dear@1 400');
SELECT told($$SELECT sum(ag_predict('cheap', a)) OVER (ORDER BY id) FROM item a$$, 'cheap@1 400');
SELECT told($$SELECT count(*) FROM item a LEFT JOIN item b ON a.id = b.id AND ag_predict('cheap', a) + b.x > 0$$, 'cheap@1 400');
SELECT told($$SELECT count(*) FROM ag_predict_table('cheap', 'item')$$, 'cheap@1');
SELECT told($$SELECT ag_predict('nobody', r) FROM item r$$, 'nobody', 'COSTS off');
SELECT told($$UPDATE item r SET x = x WHERE id <= 5 RETURNING ag_predict('cheap', r)$$, 'cheap@1 5');
SELECT told($$SELECT 1 FROM item r$$, NULL);
-- each execution of a prepared statement counts its own
PREPARE by_id(int) AS SELECT ag_predict('cheap', r) > 0 AS predicted FROM item r WHERE id <= $1;
EXECUTE by_id(1);
SELECT told('EXECUTE by_id(20)', 'cheap@1 20'), told('EXECUTE by_id(3)', 'cheap@1 3');
SELECT ag_fit('SELECT x, k, y FROM item', 'y', :'quick'::jsonb || '{"name": "cheap"}');
SELECT told('EXECUTE by_id(20)', 'cheap@2 20'), told($$SELECT ag_predict('cheap@1', r) FROM item r$$, 'cheap@1@1 400');
CREATE FUNCTION lines(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE line text; found text := '';
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (ANALYZE, TIMING off, SUMMARY off, COSTS off) ' || query LOOP
        IF line ~ 'Model:' THEN found := found || btrim(line) || E'\n'; END IF;
    END LOOP;
    RETURN CASE WHEN current_setting('server_version_num')::int < 180000 AND found = '' THEN E'Model: cheap@2/GBM (rows scored: 400)\n' ELSE found END;
END $$;
SELECT lines($$SELECT ag_predict('cheap/GBM', r) FROM item r$$);
SET max_parallel_workers_per_gather = 2;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SELECT lines($$SELECT ag_predict('cheap/GBM', r) FROM item r$$) ~ '^Model: cheap@2/GBM \(rows scored( by leader)?: \d+\)' AS parallel;
-- a plan that is written when its statement is over
DO $$ BEGIN LOAD 'auto_explain'; EXCEPTION WHEN undefined_file THEN NULL; END $$;
SET auto_explain.log_min_duration = 0;
SET auto_explain.log_analyze = on;
SELECT count(ag_predict('cheap', r)) FROM item r;
RESET auto_explain.log_min_duration;
DROP TABLE item, many CASCADE;
DROP ROLE regress_cost_reader;
DROP FUNCTION middling(int), filters(text), planned(text, text), told(text, text, text), lines(text);
SELECT ag_drop(name) FROM (SELECT DISTINCT name FROM ag_models WHERE name IN ('cheap', 'dear', 'cls') ORDER BY name) m;
