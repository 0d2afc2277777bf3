-- ag_doctor and ag_gpus, as far as every machine answers alike; test/t/doctor.pl invents machines
SELECT "check", status, cure IS NULL AS nothing_to_do
FROM ag_doctor()
WHERE "check" IN ('versions', 'dynamic_library_path', 'max_fits', 'ag_trainer', 'toolkits')
ORDER BY "check" COLLATE "C";
-- the root cause comes first, and whatever isn't well has a cure
SELECT bool_and(status IN ('fail', 'warn', 'ok')) AS known, bool_and(cure IS NOT NULL OR status = 'ok') AS cures,
       bool_and(rank >= before) AS sorted
FROM (SELECT status, cure, rank, lag(rank, 1, 0) OVER (ORDER BY n) AS before
      FROM (SELECT status, cure, array_position(ARRAY['fail', 'warn', 'ok'], status) AS rank, n
            FROM ag_doctor() WITH ORDINALITY AS d ("check", status, found, cure, n)) AS ranked) AS pairs;
-- a GPU that can't be used says why
SET client_min_messages = warning;
SELECT count(*) AS silent FROM ag_gpus() WHERE NOT usable AND reason IS NULL;
RESET client_min_messages;
