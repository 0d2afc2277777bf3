-- The table of the demo: 1,338 invented people and what their health insurance paid for them in a year.
--
-- Every number is made from md5(seed, row, column), so every machine and every server version makes the same table.
-- Costs grow with age and children; being a smoker costs much, and far more above a body mass index of 30; one person in fourteen was
-- seriously ill.
CREATE TABLE expenses (
    age integer,
    sex text,
    bmi double precision,
    children integer,
    smoker text,
    region text,
    "Expense" double precision
);

INSERT INTO expenses
WITH random AS (
    -- u[1..10]: independent and uniform in (0, 1)
    SELECT i, ARRAY(SELECT ((('x' || substr(md5('expenses/' || i || '/' || k), 1, 8))::bit(32)::bigint) + 0.5) / 4294967296.0
                    FROM generate_series(1, 10) AS k)::double precision[] AS u
    FROM generate_series(1, 1338) AS i
), person AS (
    SELECT i,
           u,
           18 + floor(47 * u[1])::integer AS age,
           CASE WHEN u[2] < 0.495 THEN 'female' ELSE 'male' END AS sex,
           round(least(53.1, greatest(16.0, 30.7 + 6.1 * sqrt(-2 * ln(u[3])) * cos(2 * pi() * u[4])))::numeric, 2)::double precision AS bmi,
           CASE WHEN u[5] < 0.43 THEN 0 WHEN u[5] < 0.67 THEN 1 WHEN u[5] < 0.85 THEN 2
                WHEN u[5] < 0.97 THEN 3 WHEN u[5] < 0.99 THEN 4 ELSE 5 END AS children,
           CASE WHEN u[6] < 0.205 THEN 'yes' ELSE 'no' END AS smoker,
           (ARRAY['northeast', 'northwest', 'southeast', 'southwest'])[1 + floor(4 * u[7])::integer] AS region
    FROM random
), cost AS (
    SELECT person.*,
           2.9 * age * age + 480 * children
           + CASE sex WHEN 'female' THEN 160 ELSE 0 END
           + CASE region WHEN 'northeast' THEN 520 WHEN 'northwest' THEN 300 ELSE 0 END
           + CASE WHEN smoker = 'yes' AND bmi >= 30 THEN 32500 + 430 * (bmi - 30)
                  WHEN smoker = 'yes' THEN 14500 + 450 * (bmi - 25)
                  ELSE 25 * (bmi - 25) END
           -- illness, and an everyday spread
           + CASE WHEN u[8] < 0.07 THEN 6000 - 7500 * ln(u[9]) ELSE 0 END
           - 650 * ln(u[10]) AS expense
    FROM person
)
SELECT age, sex, bmi, children, smoker, region, round(greatest(1100, expense)::numeric, 2)::double precision
FROM cost
ORDER BY i;

COMMENT ON TABLE expenses IS 'invented yearly medical costs of 1,338 insured people';
ANALYZE expenses;
