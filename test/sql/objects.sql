-- What the extension's objects must all have. Each query lists what breaks the rule, and must find nothing.
\set VERBOSITY terse

-- every function, table and column is described
SELECT p.oid::regprocedure AS undescribed
FROM pg_depend AS d JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'ag_pg')
  AND p.prorettype <> 'language_handler'::regtype AND obj_description(p.oid, 'pg_proc') IS NULL
ORDER BY 1;
SELECT c.oid::regclass AS undescribed
FROM pg_depend AS d JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND d.objid = c.oid
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND c.relkind IN ('r', 'v')
  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'ag_pg')
  AND obj_description(c.oid, 'pg_class') IS NULL
ORDER BY 1;

SELECT c.oid::regclass AS undescribed, a.attname
FROM pg_depend AS d JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND d.objid = c.oid JOIN pg_attribute AS a ON a.attrelid = c.oid
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND c.relkind IN ('r', 'v') AND a.attnum > 0 AND NOT a.attisdropped
  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'ag_pg')
  AND col_description(c.oid, a.attnum) IS NULL
ORDER BY 1, 2;

-- nothing runs with another role's rights
SELECT p.oid::regprocedure AS security_definer
FROM pg_depend AS d JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND p.prosecdef
  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'ag_pg')
ORDER BY 1;

-- functions that write are volatile and never run in parallel; those that predict are stable and may
SELECT p.oid::regprocedure AS mislabelled, p.provolatile, p.proparallel
FROM pg_depend AS d JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'ag_pg')
  AND CASE WHEN p.proname ~ '^ag_predict(_class|_proba|_quantiles)?$' THEN p.provolatile <> 's'
             OR p.proparallel <> CASE WHEN p.proname = 'ag_predict' AND p.pronargs = 3 THEN 'r' ELSE 's' END -- a domain's CHECK may do anything
           WHEN p.proname ~ '^ag_(fit$|fit_async|wait|cancel|drop|activate|create|rename|grant|revoke|reassign)' THEN p.provolatile <> 'v' OR p.proparallel <> 'u'
           ELSE p.provolatile = 'i' AND p.proname <> 'ag_in_test' END
ORDER BY 1;

-- tables belong to the extension's owner alone, and are dumped
SELECT c.oid::regclass AS granted
FROM pg_depend AS d JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND d.objid = c.oid,
     aclexplode(c.relacl) AS a
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND c.relkind IN ('r', 'S') AND a.grantee <> c.relowner
  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'ag_pg')
ORDER BY 1;
SELECT c.oid::regclass AS not_dumped
FROM pg_depend AS d JOIN pg_class AS c ON d.classid = 'pg_class'::regclass AND d.objid = c.oid
JOIN pg_extension AS e ON e.oid = d.refobjid
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e' AND c.relkind IN ('r', 'S') AND e.extname = 'ag_pg'
  AND c.relname <> 'ag_job_order' AND NOT c.oid = ANY (coalesce(e.extconfig, '{}'))
ORDER BY 1;
